package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Member is a PostgreSQL server of a Cluster with the Patroni that starts it.
type Member struct {
	Name           string
	cluster        *Cluster
	place          Place
	port, restPort int
	patroni        *exec.Cmd
}

func (m *Member) dir() string             { return filepath.Join(m.cluster.dir, m.Name) }
func (m *Member) file(name string) string { return filepath.Join(m.dir(), name) }

// prepare writes the configuration of Patroni. JSON is YAML.
func (m *Member) prepare() error {
	if err := m.cluster.mkdir(m.dir()); err != nil {
		return err
	}
	type object = map[string]any
	user := func(name string) object { return object{"username": name, "password": m.cluster.password} }
	text, err := json.MarshalIndent(object{
		"scope": "slipway", "name": m.Name,
		"restapi": object{"listen": m.place.at(m.restPort), "connect_address": m.place.at(m.restPort)},
		"etcd3":   object{"host": m.cluster.etcd.at(m.cluster.etcdPort)},
		"bootstrap": object{
			"dcs": object{
				"ttl": 20, "loop_wait": 5, "retry_timeout": 5, "synchronous_mode": true, "postgresql": object{"use_pg_rewind": true},
			},
			"initdb": []any{object{"encoding": "UTF8"}, object{"locale": "C.UTF-8"}, "no-sync"},
		},
		"postgresql": object{
			"listen": m.place.at(m.port), "connect_address": m.place.at(m.port), "data_dir": m.file("data"), "bin_dir": m.cluster.bin,
			"pgpass":         m.file("pgpass"),
			"authentication": object{"superuser": user("slipway"), "replication": user("replicator")},
			"parameters":     object{"unix_socket_directories": m.dir(), "fsync": "on"},
			"pg_hba":         []string{"local all all scram-sha-256", "host all all all scram-sha-256", "host replication all all scram-sha-256"},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.file("patroni.yml"), text, 0o600); err != nil {
		return err
	}
	return m.cluster.own(m.file("patroni.yml"))
}

func (m *Member) start() (err error) {
	m.patroni, err = m.cluster.run(m.place, m.dir(), "patroni", m.file("patroni.yml"))
	return err
}

// Kill ends all processes of the member with SIGKILL, as when its machine loses power.
func (m *Member) Kill(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile(m.file("data/postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", postmaster, postmaster))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range append([]string{strconv.Itoa(m.patroni.Process.Pid), first}, strings.Fields(string(children))...) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(n, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// StartAgain starts a member that was killed. Patroni makes it a standby when there is a primary.
func (m *Member) StartAgain(t testing.TB) {
	t.Helper()
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
}
