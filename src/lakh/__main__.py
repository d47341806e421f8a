"""`python -m lakh` is `lakh`."""

from lakh.cli.main import main

main()
