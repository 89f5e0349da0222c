"""The page "Coming from another system": complete, and what it names exists.

`test_commands.py` runs the commands that need no training; here the others run, made small.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex

import gymnasium as gym
import pytest
from tests.docs.pages import ROOT, blocks
from tests.docs.test_commands import commands_of

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError
from berthline.policies.scheduler import Scheduler

PAGE = ROOT / "docs" / "guides" / "coming-from.md"
NOT_THERE = "**not there"

NAMED_BY_READMES = {
    "RLTune": """
        --workload --epochs --trajs --seed --sched_algo --exp_name --pre_trained --trained_model
        --attn --backfil --score_type --batch_job_slice --use_milp_allocation
        --rlmodel --len --iter --job_score_type
        *_train_v2.py *_eval_v2.py *_env_base_v2.py allocation_score.py synthetic_trace.csv""",
    "DRL_Scheduler": """
        --mode --algo --seed --resume --checkpoint --workload_type --workload_path main.py config.py
        """,
    "RLMetaDQN": """
        run_core_sim.py run_simulated_experiments_tpds.py run_robustness.py run_real_system.py
        --trace-dir run_ablation_studies.py analyze_core_sim.py plot_util_vs_gpu.py
        SRPT EDF StaticPriority StaticEqual DynamicHeuristic
        workload_shape intensity gpu_count scheduler avg_jct slowdown makespan queue_len_max
        fairness_jain utilization energy oracle_gap perturbation_type noise_level delta_slowdown
        seed_variance queue_explosions component_removed delta_jct delta_fairness
        delta_queue_stability --runtime core_sim_metrics.csv robustness_metrics.csv
        ablation_metrics.csv real_system_metrics.csv util_vs_gpus.pdf cdf_jct.pdf oracle_gap.pdf
        robustness_radar.pdf ablation_bar.pdf""",
    "lsf_autohost": """
        --log-dir --num-hosts --episode-length --max-jobs-per-step --host-cores-range
        --host-memory-range --job-cores-range --job-memory-range --total-timesteps --rollout-steps
        --lr --gamma --lam --clip-coef --ent-coef --vf-coef --lr-schedule --lr-warmup-steps
        --early-stopping-patience --early-stopping-threshold --save-freq --resume-from
        extract_test_data.py tensorboard First-Available lsf_train.py debug_detailed.py debug_ppo.py
        benchmark_hidden_sizes.py""",
    "gpu-optimizer": """
        evaluate_baselines.py train_ppo.py plot_training_curve.py --seed --jobs-per-episode
        --max-queue-size --eval-num-blocks --eval-episodes --lookahead-mode --arrival-mode
        --horizon-factor --preset --policy-arch --total-timesteps --out baseline_stable
        RAND_FEAS_NO0 FIFO SJF""",
}
"""Options, scripts, files, heuristics and columns in the READMEs of the five systems."""

PRESETS = {
    "RLTune": "rltune",
    "DRL_Scheduler": "drl-scheduler",
    "RLMetaDQN": "rlmetadqn",
    "lsf_autohost": "lsf",
    "gpu-optimizer": "lookahead",
}
ENVIRONMENTS = {"rlmetadqn": "Meta", "lsf": "Place"}
ALGORITHMS = ("ppo", "d3qn", "sac", "meta-dqn")
SYSTEMS = sorted(NAMED_BY_READMES)


def sections() -> dict[str, str]:
    _, *parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.partition("\n")[0]: part for part in parts}


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def counterparts(system: str) -> list[str]:
    """Return the code on our side: second cells of tables, and the lists below them."""
    text = re.sub(r"\s+", " ", "\n".join(
        line.split("|")[2] if line.startswith("|") else line
        for line in without_blocks(sections()[system]).splitlines()
    ))  # fmt: skip
    return re.findall(r"`([^`]+)`", text)


def words_of(code: str) -> list[str]:
    return shlex.split(code)


def settings(words: list[str], flag: str) -> dict[str, object]:
    """Return the values of `--set` or `--config`, read as the command line reads them."""
    found = {}
    for option, text in itertools.pairwise(words):
        if option == flag:
            key, _, value = text.partition("=")
            try:
                found[key] = json.loads(value)
            except ValueError:
                found[key] = value
    return found


@pytest.mark.parametrize("system", SYSTEMS)
def test_everything_that_its_readme_names_is_translated(system):
    text = without_blocks(sections()[system])
    missing = [
        name
        for name in NAMED_BY_READMES[system].split()
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    ]
    assert missing == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_rows_have_a_counterpart_or_say_that_there_is_none(system):
    for line in without_blocks(sections()[system]).splitlines():
        if line.startswith("|") and not re.match(r"\|( ---|.*\| here \|)", line):
            answer = line.split("|")[2]
            assert "`" in answer or NOT_THERE in answer.lower() or "not needed" in answer, (
                f"no answer: {line}"
            )


@pytest.mark.parametrize("system", SYSTEMS)
def test_options_exist(system):
    """Of some verb: the help texts on the reference pages are generated."""
    known = set()
    for name in ("command-line.md", "command-line-traces.md"):
        text = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
        known |= set(re.findall(r"--[a-z][a-z-]*", text))
    for code in counterparts(system):
        named = [word for word in words_of(code) if word.startswith("--")]
        if not code.startswith("tensorboard"):
            assert set(named) <= known, code


@pytest.mark.parametrize("system", SYSTEMS)
def test_verbs_exist(system, capsys):
    verbs = {tuple(words_of(code)[1:3]) for code in counterparts(system) if "berthline " in code}
    assert verbs
    for verb, *rest in verbs:
        words = [verb, *(word for word in rest if word in {"curve", "figures"})]
        assert main([*words, "--help"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("system", SYSTEMS)
def test_settings_of_environments_and_generators_exist(system, playground):
    preset = PRESETS[system]
    name = f"berthline/{ENVIRONMENTS.get(preset, 'Pick')}-v0"
    tried = 0
    for code in counterparts(system):
        given = settings(words_of(code.replace("FILE", "philly.csv")), "--set")
        if not given:
            continue
        tried += 1
        try:
            gym.make(name, preset=preset, **{"knowledge": "exact", **given}).close()
        except ConfigError:
            generators = ("on-off", preset)
            assert any(generates(generator, given) for generator in generators), code
    assert tried or system == "RLMetaDQN"


def generates(generator: str, given: dict[str, object]) -> bool:
    try:
        return len(bl.generate(generator, cluster="uniform:1x8", jobs=10, **given)) == 10
    except (bl.BerthlineError, TypeError):
        return False


@pytest.mark.parametrize("system", SYSTEMS)
def test_settings_of_algorithms_exist(system):
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    from berthline.learn.algorithms.algorithm_table import config_of

    for code in counterparts(system):
        given = settings(words_of(code), "--config")
        errors = []
        for algorithm in ALGORITHMS:
            try:
                config_of(algorithm, given)
            except ConfigError as error:
                errors.append(str(error))
        assert len(errors) < len(ALGORITHMS), (code, errors)


@pytest.mark.parametrize("system", ["RLTune", "RLMetaDQN", "gpu-optimizer"])
def test_schedulers_exist(system):
    lists = re.findall(
        r"\*\*Baselines\*\*: (.*?)\n- |^\| (?:SRPT|EDF|Static\w+|Dynamic\w+) \| (.*) \|$"
        r"|^\| FIFO, SJF, `RAND_FEAS_NO0` \| (.*) \|$",
        sections()[system],
        re.MULTILINE | re.DOTALL if system == "RLTune" else re.MULTILINE,
    )
    names = re.findall(r"`([^`]+)`", " ".join(itertools.chain(*lists)))
    assert len(names) >= 3
    for name in names:
        Scheduler.parse(name)


def test_metrics_exist(capsys):
    assert main(["sim", "synthetic", "--jobs", "50", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = sections()["RLMetaDQN"].partition("| column |")[2] + sections()["lsf_autohost"]
    keys = re.findall(r"`((?:jct|slowdown|queue|fairness|utilization|wait|jobs)\.\w+)`", rows)
    keys += ["energy_kwh", "makespan", "load_imbalance"]
    assert len(keys) > 8
    for key in keys:
        value = printed
        for part in key.split("."):
            value = value[part]


SMALL = {
    "--steps": "64",
    "--envs": "4",
    "--episodes": "8",
    "--windows": "2",
    "--window-jobs": "40",
}


def made_small(words: list[str]) -> list[str]:
    """Return a command that trains or evaluates a little, with the same other options."""
    wanted = {
        "train": ("--steps", "--envs", "--episodes"),
        "eval": ("--windows", "--window-jobs"),
    }.get(words[0], ())
    if "--regimes" in words:
        wanted = ("--windows",)  # regimes have their own jobs
    kept = list(words)
    for option in wanted:
        if option in kept:
            at = kept.index(option)
            del kept[at : at + 2]
        kept += [option, SMALL[option]]
    if words[0] == "train":
        is_trace = any(word.startswith("workload=") for word in words)
        # Fewer jobs of RLTune's never wait, and training is refused where all rivals tie.
        number = 256 if "rltune" in words and not is_trace else 32
        kept += ["--set", f"episode_jobs={number}"]
        if is_trace:
            kept += ["--set", "split_gap=60"]
    return kept


@pytest.mark.parametrize("system", SYSTEMS)
def test_training_commands_run(system, playground, capsys):
    for extra in ("torch", "safetensors", "onnx", "onnxruntime", "matplotlib"):
        pytest.importorskip(extra, reason=f"no {extra}: make venv")
    section = sections()[system]
    ran = 0
    for block in blocks(PAGE, "console"):
        if not block.not_run or block.text not in section:
            continue
        for command in commands_of(block):
            words = made_small(shlex.split(command.text)[1:])
            assert main(words) == 0, f"{command}\n{capsys.readouterr().err}"
            ran += 1
    assert ran >= 2
