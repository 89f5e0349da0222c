"""One small valid file for every trace format, made up here: what the fuzz test damages.

A new format adds one entry to `SEEDS`. Formats that cannot do without a further file, given by an
option, have it in `COMPANIONS`: format -> option -> content.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from berthline.model.workload import Workload
from berthline.traces.formats.parquet import write_parquet


def _lines(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def _parquet() -> bytes:
    workload = Workload.from_columns(
        submit=[0, 5, 9],
        run=[60, 0.5, 1e6],
        gpus=[1, 8, 2],
        estimate=[100, float("nan"), 2e6],
        user=[0, 1, 0],
        user_names=("ann", "bob"),
        names=["j1", "j2", "j3"],
        provenance={"format": "csv", "rows": 3, "used": 3, "dropped": {}},
    )
    with tempfile.TemporaryDirectory() as directory:
        return write_parquet(workload, Path(directory) / "x.parquet").read_bytes()


_PHILLY_TIMES = [("2017-10-07 01:12:09", "2017-10-07 02:13:23"), ("None", "None")]
_PHILLY = [
    {
        "status": "Pass",
        "vc": "vc1",
        "jobid": f"application_{number}",
        "attempts": [
            {
                "start_time": start,
                "end_time": end,
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
            }
            for start, end in _PHILLY_TIMES[: number + 1]
        ],
        "submitted_time": "2017-10-07 01:10:00",
        "user": f"u{number}",
    }
    for number in range(2)
]

_SACCT_JSON = {
    "jobs": [
        {
            "job_id": 100 + number,
            "name": "train",
            "user": "ann",
            "partition": "gpu",
            "state": {"current": ["COMPLETED"]},
            "time": {
                "submission": 1_700_000_000 + number,
                "start": 1_700_000_010,
                "end": 1_700_000_500,
                "elapsed": 490,
                "limit": {"set": True, "infinite": False, "number": 60},
            },
            "priority": {"set": True, "infinite": False, "number": 10},
            "tres": {
                "allocated": [
                    {"type": "cpu", "name": "", "id": 1, "count": 8},
                    {"type": "gres", "name": "gpu", "id": 1001, "count": 2},
                ],
                "requested": [{"type": "cpu", "name": "", "id": 1, "count": 8}],
            },
            "required": {"CPUs": 8},
        }
        for number in range(2)
    ]
}

_LSF_ACCT = (
    '"JOB_FINISH" "10.1" 1709290000 501 2001 33554438 4 1709280000 0 0 1709280600 "ann" "gpu" ""'
    ' "" "" "login1" "work" "" "out.log" "" "1709280000.501" 0 1 "gpuhost01" 64 60.0 "train"'
    ' "python train.py" 8123.5 210.25 3145728 0 -1 -1 0 0 0 0 0 -1 0 0 0 0 0 0 -1 "" "default" 0 4'
    ' "" "" 0 3145728 4194304 "" "" "" "" 0 "" 0 "" -1 "/ann" "" "" "" -1 "" "" 5136 ""'
    ' 1709289999 "" "" 2 1032 "0" 1033 "0" 0 0 0 3145728'
    ' "select[type == any] order[r15s:pg] rusage[ngpus_physical=2.00]" "" -1 "" -1 0 "" 0 0 ""'
    ' 9399 "" 0 "" 0.0 0.00 0.00 0.00 0.00 1 "gpuhost01" -1 0 0 0'
)

SEEDS: dict[str, bytes] = {
    "swf": _lines(
        "; MaxProcs: 64",
        "1 0 -1 100 4 -1 -1 4 200 -1 1 7 -1 -1 -1 -1 -1 -1",
        "2 30 5 50.5 1 -1 -1 1 -1 -1 1 8 -1 -1 -1 -1 -1 -1",
    ),
    "philly": json.dumps(_PHILLY, indent=1).encode(),
    "philly-reduced": _lines(
        "timestamp,duration,num_gpus,gpu_time,cluster",
        "2017-10-01 00:00:05,100.5,2,201.0,11cb48",
        "2017-10-01 00:00:01,7.0,1,7.0,0e4a51",
    ),
    "helios": _lines(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
        "1,uA,v,8,64,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:05,2020-06-09 18:51:05,600,4",
        "2,uB,v2,1,4,1,FAILED,2020-06-09 19:41:01,2020-06-09 19:41:01,2020-06-09 19:42:01,60,0",
    ),
    "reduced-csv": _lines(
        "job_id,arrival_s,service_sec,gpu_count", "10#1,0,60,1", "11#2,5.5,600,8"
    ),
    "commands": _lines(
        "name,command,est_runtime_s,deadline_s,priority,submit_time,gpus,memory_mib",
        'a,"echo ""x, y"" ; ls",5,9,1,0,1,0',
        'b,"[""sleep"", ""2""]",2.5,,0,1.5,2,64',
    ),
    "acme": _lines(
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
        "queue,gpu_time",
        "1,u1,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
        "2023-03-01 00:20:51+08:00,117,32,936.0",
        "2,u2,1,4,64,Other,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,"
        "2023-03-01 01:09:04+08:00,2693,13,10772.0",
    ),
    "slurm-sacct": _lines(
        "JobID|JobIDRaw|JobName|Partition|Account|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|State"
        "|NCPUS|ReqMem|ReqTRES|AllocTRES|Priority",
        "1|1|a|gpu|x|ann|2024-03-01T08:00:00|2024-03-01T08:00:05|2024-03-01T10:30:05|9000|240"
        "|COMPLETED|8|64G|cpu=8,gres/gpu=2,mem=64G,node=1|cpu=8,gres/gpu=2,mem=64G,node=1|10500",
        "1.batch|1.batch|batch||x||2024-03-01T08:00:05|2024-03-01T08:00:05|2024-03-01T10:30:05|9000"
        "||COMPLETED|8||||",
        "2|2|b|gpu|x|bob|2024-03-01T08:10:00|2024-03-01T08:20:05|2024-03-01T08:30:05|600|60"
        "|TIMEOUT|4|32G|cpu=4,gres/gpu=1,mem=32G,node=1|cpu=4,gres/gpu=1,mem=32G,node=1|10",
    ),
    "slurm-json": json.dumps(_SACCT_JSON, indent=1).encode(),
    "slurm-database": _lines(
        "id_job,id_user,cpus_req,mem_req,partition,priority,state,timelimit,time_submit,"
        "time_eligible,time_start,time_end,tres_alloc,tres_req,job_type",
        '1.0,7.0,4,34000,normal,10,3,60,1609535912,1609535912,1609808470,1609808777,"1=4,1002=1",'
        '"1=4,2=34000,4=1,5=4,1002=1",OTHER',
        "2.0,8.0,8,34000,normal,11,5,4294967295,1609535999,1609535999,1609808470,1609808999,"
        '"1=8,1001=2","1=8,2=34000,4=1,5=4,1001=2",OTHER',
    ),
    "lsf-acct": _lines(_LSF_ACCT, _LSF_ACCT.replace(" 501 ", " 502 ")),
    "lsf-csv": _lines(
        "job_id,num_cores,max_mem_gb,num_hosts,submit_time,start_time,finish_time,resource_request,"
        "wait_time,run_time,exit_status",
        "386,1,0.5,1,2022-02-14T08:15:45,2022-02-14T08:15:46,2022-02-14T08:15:49,"
        "rusage[ngpus_physical=1.00],0:00:01,0:00:03,0",
        "387,2,0.1,1,2022-02-14T08:16:51,2022-02-14T08:16:52,2022-02-14T08:17:08,"
        "rusage[ngpus_physical=2.00],0:00:01,0:00:16,0",
    ),
    "alibaba-pai": _lines(
        "4f057009a5d481acec67b088,worker,2.0,Terminated,1739162.0,1739200.0,600.0,29.3,50.0,T4",
        "5f057009a5d481acec67b088,ps,1.0,Terminated,1739262.5,1739300.0,600.0,29.3,100.0,MISC",
    ),
    "alibaba-openb": _lines(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time",
        "pod-1,12000,16384,1,460,,LS,Running,0,12537496,0",
        "pod-2,6000,12288,2,1000,V100M16|V100M32,BE,Failed,427061,430000,427099",
    ),
    "alibaba-dlrm": _lines(
        "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,"
        "rdma_limit,memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,"
        "creation_time,scheduled_time,deletion_time",
        "i1,HN,app1,10,10,1,1,25,25,30.5,30.5,90,90,-1,100,105,9000",
        "i2,HN,app2,10,10,1,1,25,25,30.5,30.5,90,90,2,200,205,9500",
    ),
    "alibaba-spot": _lines(
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
        "job_type",
        "1,13,A10,20,1,1,0,27647,HP",
        "2,57,A100-SXM4-80GB,15,1,16,958,4106,Spot",
    ),
    "alibaba-spot-reduced": _lines("arrival_time,runtime,gpus,priority", "0,60,1,0.5", "9,600,8,5"),
    "google-2011": _lines(
        "600000000,,10,0,user1,2,name1,logical1",
        "601000000,,10,1,user1,2,name1,logical1",
        "602000000,,11,0,user2,0,name2,logical2",
        "603000000,,11,1,user2,0,name2,logical2",
        "700000000,,10,4,user1,2,name1,logical1",
        "800000000,,11,4,user2,0,name2,logical2",
    ),
    "rltune": _lines(
        "; jobs",
        "a,0,-1,60,1,-1,-1,-1,100,29.3,1,-1,-1,-1,0,-1,-1,2,1",
        "b,5,0,600,8,-1,-1,-1,-1,29.3,1,7,-1,-1,0,-1,-1,-1,-1",
    ),
    "tiresias": _lines(
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval",
        "0,1,0,606,vgg19,164,30",
        "1,8,30,133,vgg11,147,23",
    ),
    "muri": _lines(
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
        "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority",
        "0,1,0,153715,vgg19,16,16755000,145000,109,114,80,0,1",
        "1,2,6000,34273,dqn,128,16794000,6000,490,0.6,8,0,0",
    ),
    "pollux-sia": _lines(
        "name,time,application,num_replicas,batch_size",
        "cifar10-0,107,cifar10,6,2048",
        "bert-1,110.5,bert,12,384",
    ),
    "gavel": _lines(
        "ResNet-18 (batch size 32)\tpython3 main.py -b 32 \t--num_steps\t1\t684310\t0.0\t1",
        "LM (batch size 10)\tpython3 main.py --cuda\t--steps\t1\t51427\t9357.0\t8",
    ),
    "parquet": _parquet(),
    "csv": _lines(
        "id,submitted_at,started_at,ended_at,num_gpus,user,queue,gpu_type,priority,memory_gb",
        "1,2024-01-01 00:00:00,2024-01-01 00:00:10,2024-01-01 01:00:00,2,ann,a,A100|V100,1,0.5",
        "2,2024-01-01 00:05:00,2024-01-01 00:10:10,2024-01-01 03:00:00,0.5,bob,b,,2,64",
    ),
}
"""The file of each format, by the format's name."""

COMPANIONS: dict[str, dict[str, bytes]] = {
    "pollux-sia": {
        "run_times": _lines("application,num_replicas,run_time", "cifar10,6,1200", "bert,12,9000.5")
    },
    "gavel": {
        "throughputs": json.dumps(
            {
                "v100": {
                    "('ResNet-18 (batch size 32)', 1)": {"null": 20.5},
                    "('LM (batch size 10)', 8)": {"null": 80.25},
                }
            }
        ).encode()
    },
}
"""Files that options of a format name."""
