"""Rewards: every named one, every occasion and every way to give one, computed by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.env.by_hand import at_random, first_allowed, make, play, play_by
from tests.sim.scenarios import jobs, nodes

import berthline as bl
from berthline.env.rewards import REWARDS, SCOPES, Reward, Term, resolve_reward
from berthline.errors import ConfigError, PolicyError
from berthline.model.limits import Outage
from berthline.model.schedule import FINISH
from berthline.policies.reward_words import REWARD_WORDS

# Two GPUs. A and B start at 0; C, submitted at 10, starts when A ends at 100, and ends at 120.
THREE = jobs(
    (0, 100, 1), (0, 50, 1), (10, 20, 2), user=[0, 1, 0], deadline=[90, 60, 200], priority=[1, 2, 3]
)
CLUSTER = "uniform:1x2:V100"
NO_OP = 64


def rewarded(reward, *actions, workload=THREE, **options):
    """Return the episode of these actions; the default is all three starts."""
    options = {"cluster": CLUSTER, "knowledge": "exact", "reward": reward} | options
    return play(make("pick", workload, **options), *(actions or (0, 0, 0)))


class TestNamed:
    def test_jct(self):
        episode = rewarded("jct")
        # The first decision is at the instant of the second; C's start ends a wait that began at
        # 10.
        assert episode.rewards == pytest.approx([0, -(100 + 50 + 90), -20])
        assert sum(episode.rewards) == pytest.approx(-(100 + 50 + 110))

    def test_mean_jct_hours(self):
        assert sum(rewarded("mean-jct-hours").rewards) == pytest.approx(-(260 / 3) / 3600)

    def test_mean_wait_hours(self):
        assert sum(rewarded("mean-wait-hours").rewards) == pytest.approx(-(90 / 3) / 3600)

    def test_slowdown(self):
        assert rewarded("slowdown").rewards == pytest.approx([0, -(1 + 1), -110 / 20])

    def test_slowdown_is_bounded(self):
        """5 s of run time count as 10, and nothing is below 1."""
        workload = jobs((0, 5, 2), (0, 5, 2))
        assert rewarded("slowdown", 0, 0, workload=workload).rewards == pytest.approx([-1, -1])
        workload = jobs((0, 35, 2), (0, 5, 2))
        assert rewarded("slowdown", 0, 0, workload=workload).rewards == pytest.approx([-1, -4])

    @pytest.mark.parametrize(
        ("score", "mine", "theirs"),
        [
            # C first: A and B start at 30. FCFS starts A and B at 0 and C at 100.
            ("bounded_slowdown", (1 + 1.3 + 1.6) / 3, (1 + 1 + 5.5) / 3),
            ("slowdown", (1 + 1.3 + 1.6) / 3, (1 + 1 + 5.5) / 3),
            ("wait", (0 + 30 + 30) / 3, 90 / 3),
            ("jct", (20 + 130 + 80) / 3, 260 / 3),
        ],
    )
    def test_relative(self, score, mine, theirs):
        name = f"relative-{score.replace('_', '-')}"
        # At 0 nothing, and so at 10; C then runs from 10 to 30.
        episode = rewarded(name, NO_OP, 2, 0, 0, baseline="fcfs")
        assert episode.times == [0, 10, 30, 30]
        assert episode.rewards == [0, 0, 0, pytest.approx((theirs - mine) / max(theirs, mine))]

    def test_relative_utilization(self):
        episode = rewarded("relative-utilization", NO_OP, 2, 0, 0, baseline="fcfs")
        mine, theirs = 190 / (130 * 2), 190 / (120 * 2)
        assert episode.rewards[-1] == pytest.approx((mine - theirs) / theirs)

    def test_relative_to_no_wait_at_all(self):
        """No job waits under the baseline: the unit is then a second, not zero."""
        workload = jobs((0, 10, 1), (0.5, 10, 1))
        episode = rewarded("relative-wait", NO_OP, 0, 0, workload=workload, baseline="fcfs")
        assert episode.rewards[-1] == pytest.approx(-0.25)

    def test_multi_objective(self):
        episode = rewarded("multi-objective")
        assert episode.sum_of("jct") == pytest.approx(-(260 / 3) / 3600)
        assert episode.sum_of("deadlines") == pytest.approx(-1 / 3)  # A, due at 90
        # 2 GPUs until 50, 1 until 100, 2 until 120; a V100 draws 300 W busy and 40 W idle.
        joules = 50 * 600 + 50 * 340 + 20 * 600
        assert episode.sum_of("energy") == pytest.approx(-joules / 3.6e6 / 3)
        users = np.array([(1 + 5.5) / 2, 1])
        jain = users.sum() ** 2 / (2 * (users**2).sum())
        assert episode.sum_of("fairness") == pytest.approx(jain - 1)
        assert sum(episode.rewards) == pytest.approx(sum(map(episode.sum_of, episode.terms[0])))

    def test_multi_objective__jobs_left_over_have_missed_their_deadlines_too(self):
        """Keeping a late job until the episode is truncated gains nothing."""
        episode = rewarded("multi-objective", 0, max_steps=1)
        assert episode.sum_of("deadlines") == 0
        assert episode.sum_of("overdue") == 0
        late = jobs((0, 100, 1), (0, 100, 2), (0, 100, 1), deadline=[10, 10, 200])
        episode = rewarded("multi-objective", 0, 1, workload=late, horizon_factor=0.2)
        assert episode.sum_of("deadlines") == 0
        assert episode.sum_of("overdue") == pytest.approx(-2 / 3)

    def test_wait_and_slowdown(self):
        episode = rewarded("wait-and-slowdown")
        assert episode.sum_of("wait") == pytest.approx(-3 * (90 / 3) / 3600)
        assert episode.sum_of("slowdown") == pytest.approx(-np.log2(5.5) / 3)

    def test_multi_objective_with_weights(self):
        plain = rewarded("multi-objective")
        weights = {"jct": 10, "deadlines": 0, "fairness": 0.5}
        episode = rewarded("multi-objective", reward_weights=weights)
        assert episode.sum_of("jct") == pytest.approx(10 * plain.sum_of("jct"))
        assert episode.sum_of("deadlines") == 0
        assert episode.sum_of("energy") == plain.sum_of("energy")
        assert episode.sum_of("fairness") == pytest.approx(plain.sum_of("fairness") / 2)

    def test_every_reward_is_tested(self):
        """Those of the reference systems are in test_presets.py."""
        assert set(REWARDS) == {
            *("jct", "mean-jct-hours", "mean-wait-hours", "wait-and-slowdown", "slowdown"),
            "multi-objective",
            *(f"relative-{name}" for name in ("bounded-slowdown", "slowdown", "wait", "jct")),
            *("relative-utilization", "drl-scheduler", "rlmetadqn", "lsf", "lookahead"),
        }
        assert all(reward.name == name and reward.meaning for name, reward in REWARDS.items())


class TestAgainstTheSimulator:
    @pytest.mark.parametrize("seat", ["pick", "place", "meta", "gate"])
    def test_jct_sums_to_minus_the_total(self, seat):
        env = make(seat, episode_jobs=80, load=1.2, cluster="uniform:4x8", reward="jct")
        for seed in range(3):
            episode = play_by(env, at_random(seed), seed=seed)
            log, submit = env.log(), env.workload().submit
            finished = log.kind == FINISH
            total = (log.time[finished] - submit[log.job[finished]]).sum()
            assert finished.sum() == 80
            assert sum(episode.rewards) == pytest.approx(-total)
            assert episode.info["sched"]["mean_jct"] * 80 == pytest.approx(total)

    @pytest.mark.parametrize("knowledge", ["estimate", "exact", "predicted"])
    @pytest.mark.parametrize("baseline", ["fcfs", "sjf+easy@best-fit", "fcfs+skip?express-lane"])
    def test_the_baseline_is_a_simulation_of_the_same_jobs(self, baseline, knowledge):
        words = ("jct", "wait", "slowdown", "bounded_slowdown", "utilization")
        reward = {word: ("end", f"baseline_{word}") for word in words}
        env = make(
            "pick",
            episode_jobs=80,
            load=1.2,
            cluster="uniform:4x8",
            reward=reward,
            baseline=baseline,
            knowledge=knowledge,
        )
        for seed in range(3):
            episode = play_by(env, at_random(seed), seed=seed)
            metrics = bl.simulate(
                env.workload(), env.plan.cluster, baseline, knowledge=knowledge
            ).metrics()
            found = [episode.terms[-1][word] for word in words]
            expected = [getattr(metrics, word).mean for word in words[:-1]]
            assert found == pytest.approx([*expected, metrics.utilization.gpu])

    @pytest.mark.parametrize("cluster", ["uniform:4x8", "drl-scheduler"])
    def test_own_scores_are_those_of_the_log(self, cluster):
        """The agent does what a scheduler does, so a simulation has the same metrics."""
        words = ("jct", "wait", "slowdown", "bounded_slowdown", "utilization")
        reward = {word: ("end", f"mean_{word}") for word in words}
        reward["fairness"] = ("end", "fairness")
        reward["joules"] = ("second", "power_w")
        options = {"episode_jobs": 80, "load": 1.2, "cluster": cluster, "reward": reward}
        env = make("pick", placement="best-fit", **options)
        episode = play_by(env, first_allowed)
        metrics = bl.simulate(env.workload(), env.plan.cluster, "fcfs+skip@best-fit").metrics()
        found = episode.terms[-1]
        for word in words[:-1]:
            assert found[word] == pytest.approx(getattr(metrics, word).mean)
        assert found["utilization"] == pytest.approx(metrics.utilization.gpu)
        assert episode.sum_of("joules") / 3.6e6 == pytest.approx(metrics.energy_kwh)
        assert found["fairness"] == pytest.approx(metrics.fairness.jain)

    @pytest.mark.parametrize("load", [0.3, 1.2])
    @pytest.mark.parametrize("outages", [(), (Outage(down=3000, up=9000, nodes=(0, 2)),)])
    def test_power_of_nodes_that_sleep_or_are_down(self, load, outages):
        conditions = {"sleep_after": 600, "sleep_w": 35, "wake_delay": 30}
        cluster = bl.Cluster.uniform(nodes=4, gpus_per_node=8).with_conditions(conditions)
        cluster = dataclasses.replace(cluster, outages=outages)
        env = make(
            "pick",
            episode_jobs=80,
            load=load,
            cluster=cluster,
            placement="best-fit",
            reward={"joules": ("second", "power_w"), "seconds": ("second", "1")},
        )
        episode = play_by(env, first_allowed)
        metrics = bl.simulate(env.workload(), cluster, "fcfs+skip@best-fit").metrics()
        assert episode.sum_of("seconds") == pytest.approx(metrics.makespan)
        assert episode.sum_of("joules") / 3.6e6 == pytest.approx(metrics.energy_kwh)


class TestOccasions:
    def test_decision(self):
        """What a decision did, and what could have been done."""
        reward = {
            "no-op": ("decision", "is_no_op"),
            "started": ("decision", "has_started"),
            "work": ("decision", "startable_work"),
            "busy": ("decision", "busy_gpus"),
        }
        episode = rewarded(reward, NO_OP, 0, 0, 0)
        assert [step["no-op"] for step in episode.terms] == [1, 0, 0, 0]
        assert [step["started"] for step in episode.terms] == [0, 1, 1, 1]
        # At 10 C could start too; when A runs, B alone could.
        assert [step["work"] for step in episode.terms] == [150, 190, 50, 40]
        assert [step["busy"] for step in episode.terms] == [0, 1, 2, 2]

    def test_second(self):
        """Sums of words are exact, also for words that change while time passes."""
        reward = {
            "one": ("second", "1"),
            "waits": ("second", "waiting_seconds"),
            "backlog": ("second", "backlog_work"),
            "queue": ("second", "queue_len"),
        }
        episode = rewarded(reward)
        assert episode.sum_of("one") == pytest.approx(120)
        assert episode.sum_of("waits") == pytest.approx(90 * 90 / 2)
        assert episode.sum_of("queue") == pytest.approx(90)
        # A's 100 and B's 50 shrink to 130 at 10, when C's 40 join; to 90 at 50, when B ends; to
        # 40 at 100, when A ends; to 0 at 120.
        expected = 10 * 140 + 40 * (170 + 90) / 2 + 50 * (90 + 40) / 2 + 20 * 20
        assert episode.sum_of("backlog") == pytest.approx(expected)

    def test_time_before_the_first_decision_is_its_own(self):
        workload = jobs((3, 10, 1))
        assert rewarded({"t": ("second", "1")}, 0, workload=workload).rewards == [13]

    def test_an_episode_without_a_question_has_one_step(self):
        """No job can pass the second job, so there is nothing to decide."""
        workload = jobs((3, 10, 1), (5, 10, 2))
        options = {"cluster": CLUSTER, "knowledge": "exact", "reward": {"t": ("second", "1")}}
        episode = play_by(make("backfill", workload, **options), first_allowed)
        assert episode.rewards == [23]
        assert episode.terminated

    def test_finish(self):
        reward = {
            word: ("finish", word)
            for word in ("jct", "waited", "run_time", "true_work", "slowdown", "missed", "priority")
        }
        episode = rewarded(reward)
        last = episode.terms[-1]  # of C alone
        assert last == {
            "jct": 110,
            "waited": 90,
            "run_time": 20,
            "true_work": 40,
            "slowdown": pytest.approx(5.5),
            "missed": 0,
            "priority": 3,
        }
        assert episode.terms[1]["missed"] == 1
        assert episode.terms[1]["priority"] == 1 + 2

    def test_end_of_a_finished_episode(self):
        reward = {word: ("end", word) for word in ("is_done", "unfinished_work", "num_jobs", "now")}
        episode = rewarded(reward)
        assert episode.terms[-1] == {"is_done": 1, "unfinished_work": 0, "num_jobs": 3, "now": 120}
        assert not any(any(step.values()) for step in episode.terms[:-1])

    def test_end_of_a_truncated_episode(self):
        words = ("is_done", "unfinished_work", "total_work", "horizon", "time_left", "mean_jct")
        reward = {word: ("end", word) for word in words}
        # 10 + 0.6 x 190 / 2 = 67: B is done, A runs, C waits.
        episode = rewarded(reward, 0, 0, horizon_factor=0.6)
        assert not episode.terminated
        assert episode.terms[-1] == {
            "is_done": 0,
            "unfinished_work": 140,
            "total_work": 190,
            "horizon": pytest.approx(67),
            "time_left": pytest.approx(0),
            "mean_jct": pytest.approx((67 + 50 + 57) / 3),
        }

    def test_jct_up_to_the_horizon(self):
        assert sum(rewarded("jct", 0, 0, horizon_factor=0.6).rewards) == pytest.approx(
            -(67 + 50 + 57)
        )

    def test_a_limit_of_steps_is_a_truncation(self):
        reward = {word: ("end", word) for word in ("is_done", "unfinished_work")}
        episode = rewarded(reward, 0, 0, max_steps=2)
        assert not episode.terminated
        assert episode.terms[-1]["is_done"] == 0
        assert episode.terms[-1]["unfinished_work"] == 40  # time ran to the next question, at 100

    def test_speeds_count(self):
        """Work is that of the reference type, and JCT that of the GPUs used."""
        reward = {word: ("finish", word) for word in ("jct", "run_time", "slowdown")}
        env = make("pick", jobs((0, 100, 1)), cluster=nodes(1, gpu_type=["SLOW"]), reward=reward)
        assert play(env, 0).terms[-1] == {"jct": 200, "run_time": 100, "slowdown": 2}


class TestGiving:
    def test_terms_of_ones_own(self):
        reward = {"queue": ("second", "-queue_len"), "done": ("finish", "log2(1 + gpus)")}
        episode = rewarded(reward)
        assert list(episode.terms[0]) == ["queue", "done"]
        assert episode.rewards[-1] == pytest.approx(np.log2(3))

    def test_a_reward_object(self):
        reward = Reward("mine", "waits", (Term("queue", "second", "-queue_len", 2.0),))
        assert sum(rewarded(reward).rewards) == pytest.approx(-2 * 90)

    def test_weights_bind_the_whole_formula(self):
        term = Term("t", "second", "1 - queue_len", 3.0)
        assert term.parse().text == "3.0 * (1 - queue_len)"

    @pytest.mark.parametrize(
        ("reward", "weights", "message"),
        [
            ("jtc", None, "did you mean 'jct'"),
            ({}, None, "a name, or terms"),
            ({"a": "queue_len"}, None, "an occasion and a formula"),
            ({"a": ("seconds", "1")}, None, "did you mean 'second'"),
            ("jct", {"jtc": 1.0}, "did you mean 'jct'"),
        ],
    )
    def test_what_is_refused(self, reward, weights, message):
        with pytest.raises(ConfigError) as raised:
            resolve_reward(reward, weights)
        assert message in str(raised.value)

    def test_words_have_their_occasions(self):
        for word in REWARD_WORDS.values():
            for occasion, scopes in SCOPES.items():
                term = {"a": (occasion, f"{word.name} + 1")}
                if word.scope in scopes:
                    resolve_reward(term)
                else:
                    with pytest.raises(PolicyError, match=word.name):
                        resolve_reward(term)

    def test_words_of_rewards_are_for_rewards_only(self):
        with pytest.raises(PolicyError, match="horizon"):
            make("pick", features=["horizon"])
        with pytest.raises(PolicyError, match="true_work"):
            bl.simulate(THREE, bl.Cluster.parse(CLUSTER), "[true_work]")
