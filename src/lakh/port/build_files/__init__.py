"""What does a build file become on MUSA, and what in it will not work?"""
from lakh.port.findings import PortContext, Translation
def is_build_file(path): return False
def declared_names(text,*,path): return frozenset()
def translate(text,*,path,context): return Translation(text=text)
