"""The command starts at once: it imports what it needs, and no more."""

import subprocess
import sys


def modules_loaded(*arguments: str) -> set[str]:
    code = (
        "import sys\nfrom rollwise.cli import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_no_command() -> None:
    for arguments in (["--help"], ["--version"]):
        loaded = modules_loaded(*arguments)
        assert not {"jsonargparse", "torch", "trl", "rich", "yaml"} & loaded
        rooms = {name.split(".")[1] for name in loaded if name.startswith("rollwise.")}
        assert not {"inference", "training", "reports", "simulation", "evaluation", "models"} & rooms
        assert {name for name in loaded if name.startswith("rollwise.cli.")} == {
            "rollwise.cli.main",
            "rollwise.cli.commands",
        }


def test_a_commands_help_imports_that_command_alone() -> None:
    loaded = modules_loaded("train", "--help")
    assert not {"torch", "trl", "transformers", "rollwise.cli.bestof", "rollwise.inference"} & loaded
    loaded = modules_loaded("head", "fit", "--help")
    assert not {"torch", "rollwise.cli.head_evaluate", "rollwise.training"} & loaded


def test_a_wrong_option_of_a_method_is_named_before_torch_is_loaded() -> None:
    for option in (["--curriculum_options.forgeting", "2"], ["--curriculum_options.forgetting", "2"]):
        assert not {"torch", "trl", "transformers"} & modules_loaded("train", "--curriculum", "bots", *option)
