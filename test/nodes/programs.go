package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// real are the programs of this machine that a page may use. They do on a node what they do on a machine.
var real = []string{
	"/usr/bin/cat", "/usr/bin/chmod", "/usr/bin/chown", "/usr/bin/env", "/usr/bin/grep", "/usr/bin/install", "/usr/bin/mkdir", "/usr/bin/rm",
	"/usr/bin/sed", "/usr/bin/tee", "/usr/bin/sleep", "/usr/bin/tail", "/usr/bin/wc", "/usr/bin/bash",
	"/usr/bin/patronictl", "/usr/bin/psql", "/usr/bin/etcdctl", "/usr/local/bin/slipway",
}

// played are the commands that need a whole machine, and what takes their place. Each fails on an argument that it does not know.
var played = map[string]string{
	// The shell of a node is root already.
	"sudo": `if [ "$1" = -u ]; then user=$2; shift 2; exec /usr/bin/setpriv --reuid="$user" --regid="$user" --init-groups "$@"; fi
exec "$@"`,

	// systemd does not run in namespaces. unit.go starts what the unit file says.
	"systemctl": `exec /usr/bin/env ` + childEnv + `=systemctl SELF "$@"`,

	// The log of a unit is a file.
	"journalctl": `[ "$1 $3" = "-u -n" ] || { echo "journalctl $*: the test does not know that" >&2; exit 1; }
exec /usr/bin/tail -n "$4" ` + unitLogs + `/"$2"`,

	// The packages are installed on this machine. What their scripts do when they are installed is done here.
	"apt-get": `[ "$1 $2" = "install -y" ] || { echo "apt-get $*: the test does not know that" >&2; exit 1; }
shift 2
for package; do
	case "$package" in
	etcd-server) # it starts the service
		/usr/bin/install -d -m 0700 -o etcd -g etcd /var/lib/etcd
		systemctl start etcd ;;
	postgresql-common)
		/usr/bin/install -d -o postgres -g postgres /etc/postgresql /var/lib/postgresql
		/usr/bin/install -d -m 2775 -o postgres -g postgres /run/postgresql ;;
	postgresql) # it makes a cluster and starts it, unless it may not
		/usr/bin/grep -q '^create_main_cluster = false' /etc/postgresql-common/createcluster.conf || {
			echo "Debian makes the cluster main now, which has port 5432" >&2; exit 1; } ;;
	patroni) systemctl start patroni ;;
	etcd-client | python3-etcd) ;;
	*) echo "apt-get: the test does not know package $package" >&2; exit 1 ;;
	esac
done`,
}

// writePrograms fills a folder with all that a page may use.
func writePrograms(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, path := range real {
		if err := os.Symlink(path, filepath.Join(dir, filepath.Base(path))); err != nil {
			return err
		}
	}
	for name, script := range played {
		text := fmt.Sprintf("#!/bin/sh -eu\n%s\n", strings.ReplaceAll(script, "SELF", self))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}
