"""Runs parts of cloud-init on our documents: driver.py MODE ARGUMENT... Answers with JSON on stdout."""
import base64
import contextlib
import copy
import io
import json
import os
import sys
import tempfile
import time
from unittest import mock

import yaml
from cloudinit import helpers, util, version
from cloudinit.net import cmdline, netplan, network_state


def paths(root):
    dirs = {"cloud_dir": root, "run_dir": root + "/run", "templates_dir": root}
    os.makedirs(root + "/run", exist_ok=True)
    return helpers.Paths(dirs)


def seed(ds):
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        for name, value in (("cloudinit.dmi.read_dmi_data", None), ("cloudinit.util.find_devs_with", [])):
            stack.enter_context(mock.patch(name, return_value=value))
        ok = ds._get_data()
    raw = ds.userdata_raw
    return {
        "ok": ok,
        "seconds": time.monotonic() - started,
        "meta": ds.metadata,
        "network": ds.network_config,
        "user": raw.decode() if isinstance(raw, bytes) else raw,
        "vendor": len(ds.vendordata_raw or ""),
    }


def datasource(url):
    from cloudinit.sources import DataSourceNoCloud as nocloud

    with tempfile.TemporaryDirectory() as root:
        with mock.patch("cloudinit.util.get_cmdline", return_value="ro ds=nocloud;s=" + url):
            return seed(nocloud.DataSourceNoCloudNet({}, mock.Mock(), paths(root)))


def initrd(folder):
    """Reads a seed as it stands in /var/lib/cloud/seed/nocloud."""
    from cloudinit.sources import DataSourceNoCloud as nocloud

    with tempfile.TemporaryDirectory() as root:
        p = paths(root)
        p.seed_dir = os.path.dirname(folder.rstrip("/"))
        with mock.patch("cloudinit.util.get_cmdline", return_value="ro"):
            return seed(nocloud.DataSourceNoCloud({}, mock.Mock(), p))


def ec2(url):
    from cloudinit.sources.helpers import ec2 as client

    return {
        "meta": client.get_instance_metadata("2009-04-04", url),
        "user": len(client.get_instance_userdata("2009-04-04", url)),
    }


def merged(user, meta):
    """Returns the cloud-config that the modules get to see."""
    from cloudinit import user_data
    from cloudinit.handlers import cloud_config, jinja_template, walk
    from cloudinit.settings import PER_ALWAYS

    with tempfile.TemporaryDirectory() as root:
        p = paths(root)
        p.datasource = mock.Mock(get_instance_id=lambda: "i")
        os.makedirs(root + "/instances/i", exist_ok=True)
        os.makedirs(root + "/instance", exist_ok=True)
        with open(p.get_runpath("instance_data_sensitive"), "w") as f:
            json.dump({"ds": {"meta_data": yaml.safe_load(meta)}, "v1": {"local_hostname": yaml.safe_load(meta).get("local-hostname")}}, f)
        message = user_data.UserDataProcessor(p).process(user)
        config = cloud_config.CloudConfigPartHandler(p)
        jinja = jinja_template.JinjaTemplatePartHandler(p, sub_handlers=[config])
        kinds = {}
        for h in (config, jinja):
            for kind in h.list_types():
                kinds[kind] = h
        with mock.patch.object(config, "_write_cloud_config"):
            from cloudinit import handlers

            data = {"handlers": kinds, "handlerdir": root, "data": None, "frequency": PER_ALWAYS, "handlercount": 0, "excluded": []}
            handlers.call_begin(config, None, PER_ALWAYS)
            walk(message, handlers.walker_callback, data)
        return config.cloud_buf


def apply(config, root):
    """Lets cc_write_files write below root, and returns the owners that it asked for."""
    from cloudinit.config import cc_write_files as module

    owners, late = {}, []
    files = config.get("write_files", [])
    write = util.write_file
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(util, "write_file", lambda name, *a, **k: write(root + name, *a, **k)))
        stack.enter_context(mock.patch.object(util, "chownbyname", lambda p, u=None, g=None: owners.update({str(p): "%s:%s" % (u, g)})))
        module.write_files("write_files", [f for f in files if not f.get("defer")], "root:root")
        late = [f["path"] for f in files if f.get("defer")]
        module.write_files("write_files", [f for f in files if f.get("defer")], "root:root")
    return {"owners": owners, "late": late}


def convert(cases):
    """Runs net-convert for a list of its arguments; answers with what went wrong, "" for nothing."""
    from cloudinit.cmd.devel import net_convert

    out = []
    for args in cases:
        try:
            parsed = net_convert.get_parser().parse_args(args)
            net_convert.handle_args("net-convert", parsed)
            out.append("")
        except (Exception, SystemExit) as e:
            out.append("%s: %s" % (type(e).__name__, e))
    return out


def users(config):
    """Returns the accounts that cloud-init would make in an image whose own configuration asks for its default user."""
    from cloudinit.distros import ug_util

    config = util.mergemanydict([config, {"users": ["default"]}])

    distro = mock.Mock(default_user={"name": "image-default"}, get_default_user=lambda: {"name": "image-default"})
    found, groups = ug_util.normalize_users_groups(config, distro)
    return {"users": found, "groups": sorted(groups)}


def main():
    mode, args = sys.argv[1], sys.argv[2:]
    chatter = io.StringIO()
    with contextlib.redirect_stdout(chatter):
        if mode == "version":
            out = version.version_string()
        elif mode == "datasource":
            out = datasource(args[0])
        elif mode == "initrd":
            out = initrd(args[0])
        elif mode == "ec2":
            out = ec2(args[0])
        elif mode == "cmdline":
            config = cmdline.read_kernel_cmdline_config("ro quiet " + args[0])
            config = config.get("network", config)
            network_state.parse_net_config_data(config, renderer=netplan.Renderer() if args[1] == "netplan" else None)
            out = config
        elif mode == "convert":
            out = convert(json.load(sys.stdin))
        elif mode == "all":
            # Everything that one user-data document becomes, for a list of {user, meta, root} on stdin.
            out = []
            for case in json.load(sys.stdin):
                config = merged(base64.b64decode(case["user"]), case["meta"])
                out.append({
                    "config": config,
                    "apply": apply(config, case["root"]),
                    "users": users(copy.deepcopy(config)),
                    "runcmd": util.shellify(config.get("runcmd", [])),
                    "bootcmd": util.shellify(config.get("bootcmd", [])),
                })
        else:
            sys.exit("no mode " + mode)
    json.dump(out, sys.stdout, default=lambda v: v.decode(errors="replace") if isinstance(v, bytes) else str(v))


main()
