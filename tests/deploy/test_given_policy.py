"""Policies that are Python objects: functions, modules, models and files as schedulers."""

from __future__ import annotations

import gc
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

import berthline as bl
from berthline.compat import sb3
from berthline.errors import BerthlineError, ConfigError, PolicyError
from berthline.policies.given import find_given

CLUSTER = "uniform:4x4:V100"
SMALL = {"cluster": CLUSTER, "load": 1.3, "episode_jobs": 60, "window": 64}


def jobs(seed=3, num=80):
    return bl.generate("synthetic", cluster=CLUSTER, jobs=num, load=1.3, seed=seed)


def shortest(observation, mask):
    """Start the shortest job that can start, like sjf+skip."""
    starts = mask[:64]
    estimates = observation["jobs"][:, 1]
    return int(np.where(starts, estimates, np.inf).argmin()) if starts.any() else int(mask.argmax())


def shortest_of_batch(observations, masks):
    found = []
    for jobs, mask in zip(observations["jobs"], masks, strict=True):
        found.append(shortest({"jobs": jobs}, mask))
    return np.array(found)


def played(env, choose, seed=11):
    """Play an episode in the environment itself; return its jobs and its log."""
    observation, info = env.reset(seed=seed)
    over = False
    while not over:
        action = choose(observation, np.asarray(info["action_mask"], np.bool_))
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return env.unwrapped.workload(), env.unwrapped.log()


class TestRuns:
    @pytest.mark.parametrize("batched", [False, True])
    def test_a_function_gives_the_log_of_its_environment(self, batched):
        env = gym.make("berthline/Pick-v0", semantics="mask", no_op="always", **SMALL)
        workload, log = played(env, shortest)
        choose = shortest_of_batch if batched else shortest
        policy = bl.Policy(choose, env, batched=batched)
        found = bl.simulate(workload, CLUSTER, policy)
        assert found.log.sha256() == log.sha256()
        rule = bl.simulate(workload, CLUSTER, "sjf+skip@best-fit")
        assert found.log.sha256() == rule.log.sha256()

    def test_the_reference_simulator_does_not_run_it(self):
        with pytest.raises(ConfigError, match="native simulator"):
            bl.simulate(jobs(), CLUSTER, shortest, simulator="reference")

    def test_a_discipline_and_a_placement_may_follow_its_name(self):
        policy = bl.Policy(shortest, "Pick", semantics="mask", no_op="always", **SMALL)
        found = bl.simulate(jobs(), CLUSTER, f"{policy}@worst-fit")
        assert found.log.sha256() == bl.simulate(jobs(), CLUSTER, "sjf+skip@worst-fit").log.sha256()
        with pytest.raises(PolicyError, match="did you mean 'worst-fit'"):
            bl.simulate(jobs(), CLUSTER, f"{policy}@worst-fitt")

    @pytest.mark.parametrize("seat", ["PickPlace", "Place", "Gate", "Meta", "Backfill", "Preempt"])
    @pytest.mark.parametrize("form", ["dict", "flat"])
    def test_every_seat_sees_what_its_environment_shows(self, seat, form):
        options = {"cluster": CLUSTER, "load": 1.3, "episode_jobs": 25, "observation": form}
        env = gym.make(f"berthline/{seat}-v0", **options)
        seen = {"env": [], "policy": []}

        def choose(observation, mask, where):
            tables = observation if form == "dict" else {"flat": observation}
            seen[where].append({name: np.array(table) for name, table in tables.items()})
            if seat == "PickPlace":
                allowed = mask if where == "policy" else pairs(observation, mask)
                best = int(allowed.argmax())
                nodes = env.unwrapped.plan.cluster.num_nodes
                return best if where == "policy" else np.array([best // nodes, best % nodes])
            return int(mask.argmax())

        def pairs(observation, mask):
            shown = env.unwrapped._envs.pair_mask[0]
            window = len(shown)
            return np.append((shown & mask[:window, None]).ravel(), mask[window])

        workload, log = played(env, lambda o, m: choose(o, m, "env"))
        found = bl.simulate(workload, CLUSTER, bl.Policy(lambda o, m: choose(o, m, "policy"), env))
        assert found.log.sha256() == log.sha256()
        assert len(seen["env"]) == len(seen["policy"]) > 0
        for mine, theirs in zip(seen["policy"], seen["env"], strict=True):
            assert mine.keys() == theirs.keys()
            for name, table in mine.items():
                np.testing.assert_array_equal(table, theirs[name], err_msg=name)


class TestKinds:
    def test_a_module_takes_its_best_allowed_action(self):
        env = gym.make("berthline/Pick-v0", observation="flat", **SMALL)
        torch.manual_seed(1)
        size, actions = env.observation_space.shape[0], int(env.action_space.n)
        module = nn.Sequential(nn.Linear(size, 16), nn.Tanh(), nn.Linear(16, actions))

        def best(observation, mask):
            with torch.no_grad():
                scores = module(torch.from_numpy(observation))
            return int(np.where(mask, scores.numpy(), -np.inf).argmax())

        workload, log = played(env, best)
        module.train()
        for given in (module, ValuesToo(module)):
            policy = bl.Policy(given, env)
            assert bl.simulate(workload, CLUSTER, policy).log.sha256() == log.sha256()
        assert module.training

    def test_a_masked_model_brings_its_environment(self):
        from sb3_contrib import MaskablePPO

        options = {**SMALL, "episode_jobs": 30, "window": 8}
        envs = sb3.make("berthline/Pick-v0", num_envs=2, **options)
        model = MaskablePPO("MultiInputPolicy", envs, seed=3)

        def chosen(observation, mask):
            return int(model.predict(observation, action_masks=mask, deterministic=True)[0])

        workload, log = played(gym.make("berthline/Pick-v0", **options), chosen)
        assert bl.simulate(workload, CLUSTER, model).log.sha256() == log.sha256()

    def test_an_onnx_file_of_another_program(self, tmp_path):
        env = gym.make("berthline/Pick-v0", observation="flat", **SMALL)
        size, actions = env.observation_space.shape[0], int(env.action_space.n)
        torch.manual_seed(2)
        module = nn.Sequential(nn.Linear(size, 8), nn.Tanh(), nn.Linear(8, actions))
        file = tmp_path / "theirs.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.onnx.export(module, (torch.ones(1, size),), file, dynamo=False)
        found = bl.simulate(jobs(), CLUSTER, bl.Policy(file, env))
        same = bl.simulate(jobs(), CLUSTER, bl.Policy(module, env))
        assert found.log.sha256() == same.log.sha256()
        assert found.summary()["scheduler"] == "policy:theirs"

    def test_torch_uses_one_thread_while_it_decides(self, monkeypatch):
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            monkeypatch.delenv(name, raising=False)
        before, seen = torch.get_num_threads(), []
        torch.set_num_threads(2)
        try:

            def first(observation, mask):
                seen.append(torch.get_num_threads())
                return int(mask.argmax())

            bl.simulate(jobs(num=60), CLUSTER, first)
            assert set(seen) == {1}
            assert torch.get_num_threads() == 2
            monkeypatch.setenv("OMP_NUM_THREADS", "2")
            seen.clear()
            bl.simulate(jobs(num=60), CLUSTER, first)
            assert set(seen) == {2}
        finally:
            torch.set_num_threads(before)


class ValuesToo(nn.Module):
    """Returns scores and values, as actor-critic networks do."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, flat):
        return self.module(flat), flat.sum(dim=-1)


class TestEvaluate:
    def test_windows_rivals_and_intervals_are_those_of_a_rule(self):
        policy = bl.Policy(
            shortest, "Pick", name="tested", semantics="mask", no_op="always", dials={}, **SMALL
        )
        said = []
        rivals = ["fcfs", "sjf+easy"]
        mine = bl.evaluate(policy, windows=3, against=rivals, remark=said.append)
        settings = {"workload": "synthetic", "cluster": CLUSTER, "load": 1.3, "window_jobs": 60}
        rule = bl.evaluate("sjf+skip@best-fit", windows=3, against=rivals, **settings)
        assert mine.evaluation.rival == rule.evaluation.rival
        ours, theirs = (found.evaluation.against_rival.jct_mean for found in (mine, rule))
        assert ours == theirs
        sentence = (
            "policy:tested decides in the seat pick, with knowledge estimate: a function, asked"
            " one question at a time in Python, which is slow"
        )
        assert said == mine.summary()["policies"] == [sentence]
        assert mine.verdict.startswith("policy:tested against")

    def test_a_comparison_runs_it_here_however_many_workers(self):
        policy = bl.Policy(shortest, "Pick", name="compared", **SMALL)
        found = bl.compare(jobs(num=40), CLUSTER, ["fcfs", policy], workers=2)
        assert [row.scheduler for row in found.schedulers] == ["fcfs", "policy:compared"]

    def test_it_is_not_resumed(self, tmp_path):
        policy = bl.Policy(shortest, "Pick", **SMALL)
        settings = {"windows": 2, "against": ["fcfs"], "out": tmp_path / "run"}
        bl.evaluate(policy, **settings)
        assert (tmp_path / "run" / "summary.json").is_file()
        with pytest.raises(BerthlineError, match=r"policy|complete"):
            bl.evaluate(policy, **settings, resume=True)


class TestNames:
    def test_they_are_unique_and_end_with_the_object(self):
        def unique(observation, mask):
            return int(mask.argmax())

        first, second = bl.Policy(unique), bl.Policy(unique)
        assert [str(first), str(second)] == ["policy:unique", "policy:unique-2"]
        assert repr(second) == "Policy('unique-2', seat='pick', knowledge='estimate')"
        assert str(bl.Policy(lambda o, m: 0, name="my own")) == "policy:my-own"
        bl.simulate(jobs(num=5), CLUSTER, first)
        del first
        gc.collect()
        with pytest.raises(PolicyError, match="no policy 'policy:unique' in this process"):
            find_given("policy:unique")

    def test_it_is_not_sent_to_another_process(self):
        with pytest.raises(PolicyError, match="export_policy"):
            pickle.dumps(bl.Policy(shortest).given)


def answering(answer):
    return lambda observation, mask: answer


class TestErrors:
    @pytest.mark.parametrize(
        ("choose", "message"),
        [
            (answering(10_000), "the policy chose 10000, which is not allowed"),
            (answering(-1), "where the mask is True"),
            (answering(0.5), "the index of an action"),
            (answering(None), "the index of an action"),
            (answering([0, 1]), "the index of an action"),
            (lambda o, m: 1 / 0, "the policy failed: ZeroDivisionError: division by zero"),
            (lambda o: 0, "the policy failed: TypeError"),
            (nn.Linear(3, 3), "the policy failed: RuntimeError"),
        ],
    )
    def test_answers_that_are_no_action(self, choose, message):
        with pytest.raises(BerthlineError) as error:
            bl.simulate(jobs(num=60), CLUSTER, choose)
        assert message in str(error.value)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ((5,), "a function of"),
            (("runs/none",), "a function of"),
            (("none.onnx",), "cannot read it"),
            ((shortest, "Pik"), "did you mean 'Pick'"),
            ((shortest, object()), "an environment of berthline"),
            ((shortest, gym.make("CartPole-v1")), "an environment of berthline"),
        ],
    )
    def test_what_cannot_be_a_policy(self, given, message):
        with pytest.raises(BerthlineError) as error:
            bl.Policy(*given)
        assert message in str(error.value)

    def test_options_are_those_of_an_environment_that_was_made(self):
        env = gym.make("berthline/Pick-v0", **SMALL)
        with pytest.raises(ConfigError, match="the option load for an environment that was made"):
            bl.Policy(shortest, env, load=1.0)
        with pytest.raises(ConfigError, match="did you mean 'load'"):
            bl.Policy(shortest, "Pick", lod=1.0)
