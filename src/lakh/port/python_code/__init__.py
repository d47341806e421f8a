"""What does a Python file become on MUSA, and what in it will not work?"""

from lakh.port.python_code.names import declared_names
from lakh.port.python_code.translate import assess, translate

__all__ = ["assess", "declared_names", "translate"]
