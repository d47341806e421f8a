"""What does a build file become on MUSA, and what in it will not work?"""

from lakh.port.build_files.dispatch import assess, declared_names, is_build_file, translate

__all__ = ["assess", "declared_names", "is_build_file", "translate"]
