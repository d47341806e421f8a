"""Lakh: the software of a 100,000-accelerator AI cluster, from one description of it.

    import lakh
    print(lakh.predict("llama3-8b", "selene-a100", "tp2 dp4 mb1", sequence_length=8192, global_batch_sequences=64))

The functions of `lakh.api` are here under their own names, imported when first used; `import lakh` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakh.api import plan, predict, rehearse, scale, validate

__version__ = "0.1.0"

__all__ = ["__version__", "plan", "predict", "rehearse", "scale", "validate"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from lakh import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *globals()])
