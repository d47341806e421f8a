"""How does C, C++ and CUDA text become MUSA text, and what is left for a person?"""
