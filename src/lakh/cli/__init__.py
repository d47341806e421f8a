"""How is Lakh asked from a console? One file per command: parse, call one function of the Python API, format."""
