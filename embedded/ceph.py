# Runs monitor commands in one connection: each start of the ceph program costs up to seconds.
# Standard input: {"conf": path, "seconds": n, "steps": [...]}; a step is a monitor command, or {"usable": pool}, which
# waits until the pool takes a write. Standard output: an answer for each step up to the first that fails.
import json
import sys

import rados

asked = json.load(sys.stdin)
limit = str(asked["seconds"])
answers = []
try:
    with rados.Rados(
        name="client.admin",
        conffile=asked["conf"],
        conf={"rados_mon_op_timeout": limit, "rados_osd_op_timeout": limit, "client_mount_timeout": limit},
    ) as cluster:
        for step in asked["steps"]:
            if "usable" in step:
                with cluster.open_ioctx(step["usable"]) as pool:
                    pool.write_full("usable", b"yes")
                    pool.remove_object("usable")
                answers.append({"code": 0})
                continue
            code, out, said = cluster.mon_command(json.dumps(step), b"")
            answers.append({"code": code, "out": out.decode(), "said": said})
            if code != 0:
                break
except rados.Error as error:
    answers.append({"code": getattr(error, "errno", None) or 1, "said": str(error)})
json.dump(answers, sys.stdout)
