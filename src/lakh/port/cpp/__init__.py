"""How does C, C++ and CUDA text become MUSA text, and what is left for a person?"""

from lakh.port.cpp.translate import assess, translate

__all__ = ["assess", "translate"]
