"""Check the option names that Lakh writes against a framework's source, and record the commit.

    python tools/published_options.py megatron  /path/to/Megatron-LM
    python tools/published_options.py torchtitan /path/to/torchtitan

Takes the names of `src/lakh/planner/published/FRAMEWORK.json` (add a name there first), looks each one up in the
checkout, and either lists what is not published or writes the checked commit back.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

PUBLISHED = Path(__file__).parent.parent / "src" / "lakh" / "planner" / "published"

SOURCES = {
    "megatron": (
        "megatron/training/arguments.py",
        "megatron/training/config/training_config.py",
        "megatron/training/config/common_config.py",
        "megatron/core/transformer/transformer_config.py",
        "megatron/core/model_parallel_config.py",
    ),
    "torchtitan": (
        "torchtitan/config/configs.py",
        "torchtitan/config/manager.py",
        "torchtitan/trainer.py",
        "torchtitan/components/quantization/__init__.py",
    ),
}


def git(checkout: str, *arguments: str) -> str:
    return subprocess.run(["git", "-C", checkout, *arguments], check=True, capture_output=True, text=True).stdout


def is_published(framework: str, name: str, source: str) -> bool:
    """Megatron derives most flags from fields: --hidden-size from hidden_size, --no-x or --disable-x from x."""
    if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", source):
        return True
    if framework == "torchtitan":
        field = name.rpartition(".")[2]
        return bool(re.search(rf"^\s+{re.escape(field)}\s*:", source, re.MULTILINE))
    field = name.removeprefix("--").replace("-", "_")
    fields = {field, field.removeprefix("no_"), field.removeprefix("disable_")}
    return any(re.search(rf"^    {re.escape(f)}\s*:", source, re.MULTILINE) for f in fields)


def main(framework: str, checkout: str) -> int:
    path = PUBLISHED / f"{framework}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    source = "\n".join(git(checkout, "show", f"HEAD:{name}") for name in SOURCES[framework])
    missing = [name for name in data["options"] if not is_published(framework, name, source)]
    if missing:
        print(f"not published by {data['repository']}: {', '.join(missing)}")
        return 1
    data["commit"] = git(checkout, "rev-parse", "HEAD").strip()
    data["options"] = sorted(set(data["options"]))
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"{len(data['options'])} options of {data['repository']} are published at {data['commit'][:12]}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in SOURCES:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2]))
