"""Words for rewards only: the consequences of an agent's decision.

Rewards may know what schedulers must not: TELL_RUN_TIMES lists the words that depend on the true
run times of jobs that have not finished. No other word does. A word's scope says when it has a
value:

    finish     a job finishes; the word is about that job
    decision   a decision was just made
    end        the episode is over
    system     at any time
"""

from __future__ import annotations

from berthline.policies.vocabulary import Word

REWARD_WORDS: dict[str, Word] = {
    word.name: word
    for word in (
        Word("jct", "finish", "s", "finish - submit"),
        Word("waited", "finish", "s", "first start - submit"),
        Word("run_time", "finish", "s", "its true run time on the reference GPU type"),
        Word("true_work", "finish", "GPU s", "run_time * gpus"),
        Word("slowdown", "finish", "", "jct / run_time"),
        Word("bounded_slowdown", "finish", "", "max(1, jct / max(run_time, 10 s))"),
        Word("missed", "finish", "0 or 1", "1 if it finished after its deadline"),
        Word("jobs_in_system", "system", "jobs", "jobs submitted and not finished", "state"),
        Word("waiting_seconds", "system", "s", "sum of the waits of all waiting jobs", "state"),
        Word(
            "backlog_work",
            "system",
            "GPU s",
            "true GPU-seconds that jobs in the system still need",
            "state",
        ),
        Word("power_w", "system", "W", "power of all GPUs and sleeping nodes", "state"),
        Word("total_work", "system", "GPU s", "true work of all jobs of the episode"),
        Word("horizon", "system", "s", "when the episode is cut off; infinity = never"),
        Word("num_jobs", "system", "jobs", "jobs of the episode"),
        Word("is_no_op", "decision", "0 or 1", "1 if nothing was chosen", "state"),
        Word("has_started", "decision", "0 or 1", "1 if a job started", "state"),
        Word(
            "startable_work",
            "decision",
            "GPU s",
            "true work of the jobs that the decision could have started",
            "state",
        ),
        Word("is_done", "end", "0 or 1", "1 if no job is left"),
        Word("time_left", "end", "s", "horizon - now"),
        Word("unfinished_work", "end", "GPU s", "true work of jobs that did not finish"),
        Word("overdue_jobs", "end", "jobs", "jobs left whose deadline has passed"),
        Word("mean_jct", "end", "s", "mean JCT; unfinished jobs count as they stand"),
        Word("mean_wait", "end", "s", "mean wait; unfinished jobs count as they stand"),
        Word("mean_slowdown", "end", "", "mean slowdown; unfinished jobs count as they stand"),
        Word(
            "mean_bounded_slowdown",
            "end",
            "",
            "mean bounded slowdown; unfinished jobs count as they stand",
        ),
        Word("mean_utilization", "end", "", "share of the GPU time that jobs held"),
        Word("fairness", "end", "", "Jain's index over users' mean bounded slowdowns"),
        Word("baseline_jct", "end", "s", "mean_jct of the baseline on the same jobs"),
        Word("baseline_wait", "end", "s", "mean_wait of the baseline"),
        Word("baseline_slowdown", "end", "", "mean_slowdown of the baseline"),
        Word("baseline_bounded_slowdown", "end", "", "mean_bounded_slowdown of the baseline"),
        Word("baseline_utilization", "end", "", "mean_utilization of the baseline"),
    )
}

TELL_RUN_TIMES = frozenset(
    {"backlog_work", "total_work", "startable_work", "horizon", "time_left", "unfinished_work"}
)
"""Words whose value depends on true run times before the jobs have finished."""
