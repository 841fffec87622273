package net_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/newcomer"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/test/postgres"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

const (
	joinEnv  = "SLIPWAY_NET_JOIN"  // arguments of joinOne
	relayEnv = "SLIPWAY_NET_RELAY" // address to listen on, and the socket behind it
)

// joinAll are the arguments of a join. Ahead is how far the clock of the machine is ahead.
type joinAll struct {
	Addresses, Code, Name, Config, Data string
	Ahead                               time.Duration
}

// joinOne is a child: it does what "slipway instance join" does.
func joinOne() error {
	var a joinAll
	if err := json.Unmarshal([]byte(os.Getenv(joinEnv)), &a); err != nil {
		return err
	}
	addresses, err := invite.ParseAddresses(a.Addresses)
	if err != nil {
		return err
	}
	code, err := invite.ParseCode(a.Code)
	if err != nil {
		return err
	}
	out, err := newcomer.Join(context.Background(), newcomer.Options{
		Addresses: addresses, Code: code, Name: a.Name, Config: a.Config, DataDir: a.Data, Version: "test",
		Now: func() time.Time { return time.Now().Add(a.Ahead) },
	})
	if err != nil {
		return fmt.Errorf("%w\nhint: %s", err, inventory.HintOf(err))
	}
	text, err := json.Marshal(out)
	fmt.Println(string(text))
	return err
}

// relay is a child: it makes a Unix socket reachable from other namespaces.
func relay() error {
	at, socket, _ := strings.Cut(os.Getenv(relayEnv), " ")
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	fmt.Println("relays")
	for {
		in, err := l.Accept()
		if err != nil {
			return err
		}
		out, err := net.Dial("unix", socket)
		if err != nil {
			_ = in.Close()
			continue
		}
		for _, p := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(p[0], p[1])
				_, _ = p[0].Close(), p[1].Close()
			}()
		}
	}
}

// joining are two machines. The first serves with a PostgreSQL database that both reach over TCP, and the second is new.
type joining struct {
	t             *testing.T
	first, second *appliance
	config        string // of the second
}

func newJoining(t *testing.T) *joining {
	t.Helper()
	l := newLab(t) // skips
	pg := postgres.Start(t, postgres.Options{})
	u, err := url.Parse(pg.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := url.Parse(pg.SocketURL(""))
	if err != nil {
		t.Fatal(err)
	}
	both := netlab.NewAppliances(l.Lab, "a", "b")
	j := &joining{t: t, first: &appliance{both[0], l}, second: &appliance{both[1], l}, config: filepath.Join(l.Dir, "etc", "config.yaml")}
	hub := l.Prefix + "hub"
	l.In(hub, "ip", "addr", "add", "10.77.0.250/16", "dev", "bridge")
	path := fmt.Sprintf("%s/.s.PGSQL.%s", socket.Query().Get("host"), socket.Query().Get("port"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l.Start(hub, []string{netlab.Child("relay"), relayEnv + "=10.77.0.250:5432 " + path}, nil, self).WaitFor("relays", 1)
	u.Host = "10.77.0.250:5432"
	j.first.Env = []string{databaseEnv + "=" + u.String(), instanceEnv + "=a"}
	j.second.Env = []string{configEnv + "=" + j.config}
	j.first.Start()
	return j
}

// join runs the command on the second machine.
func (j *joining) join(a joinAll) (out newcomer.Joined, said string) {
	j.t.Helper()
	a.Data, a.Config = j.second.Data, j.config
	text, err := json.Marshal(a)
	if err != nil {
		j.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		j.t.Fatal(err)
	}
	said, err = j.first.Lab.Try(30*time.Second, "ip", "netns", "exec", j.second.Net.Server,
		"env", netlab.Child("join"), joinEnv+"="+string(text), self)
	if err == nil {
		err = json.Unmarshal([]byte(said), &out)
	}
	if err != nil && !strings.HasPrefix(said, "error ") {
		j.t.Fatalf("%v: %s", err, said)
	}
	return out, said
}

// refused expects an error, and no file that a server reads.
func (j *joining) refused(what string, a joinAll, want string) {
	j.t.Helper()
	_, said := j.join(a)
	if !strings.Contains(said, want) || !strings.Contains(said, "hint: ") {
		j.t.Errorf("%s: it says %q, want %q", what, said, want)
	}
	for _, path := range []string{j.config, filepath.Join(j.second.Data, "secret.key"), filepath.Join(filepath.Dir(j.config), "database-password")} {
		if _, err := os.Stat(path); err == nil {
			j.t.Errorf("%s: it has written %s", what, path)
		}
	}
}

func (j *joining) invite(w client.InvitationWish) wire.NewInvitation {
	j.t.Helper()
	made, err := j.first.API.Instances.Invite(j.t.Context(), w)
	if err != nil {
		j.t.Fatal(err)
	}
	return made
}

// TestPostgreSQLANewMachineJoins makes a machine an instance with one command, after some that were refused. It takes over when the first one
// is killed.
func TestPostgreSQLANewMachineJoins(t *testing.T) {
	j := newJoining(t)
	made := j.invite(client.InvitationWish{})
	at := strings.Join(made.Addresses, ",")
	if at != "10.77.0.1:8069" || made.Command != "sudo slipway instance join "+at {
		t.Errorf("%+v", made)
	}
	old := j.invite(client.InvitationWish{Name: "c"})
	if err := j.first.API.Instances.Withdraw(t.Context(), old.ID); err != nil {
		t.Fatal(err)
	}
	j.refused("withdrawn", joinAll{Addresses: at, Code: old.Code}, "the invitation was withdrawn")
	j.refused("no instance there", joinAll{Addresses: "10.77.0.9,10.77.0.250:5432", Code: made.Code}, "no instance lets this machine in: 10.77.0.9:8069: ")
	j.refused("a name that is taken", joinAll{Addresses: at, Code: made.Code, Name: "a"}, "an instance with the name a runs")

	// From here on, the code is the second machine's. It may try again, and another may not.
	route := func(verb string) {
		j.first.lab.In(j.second.Net.Server, "ip", "route", verb, "unreachable", "10.77.0.250/32")
	}
	route("add")
	j.refused("no way to the database", joinAll{Addresses: at, Code: made.Code, Name: "b"}, "the database cannot be reached: no route to host")
	route("del")
	j.refused("a wrong clock", joinAll{Addresses: at, Code: made.Code, Name: "b", Ahead: time.Hour}, "the clock of this machine is 1h ahead of")
	proof := filepath.Join(j.second.Data, "join.proof")
	j.first.Lab.Must("mv", proof, proof+".b")
	j.refused("another machine", joinAll{Addresses: at, Code: made.Code, Name: "b"}, "the code was used by another machine")
	j.first.Lab.Must("mv", proof+".b", proof)
	out, said := j.join(joinAll{Addresses: at, Code: made.Code, Name: "b"})
	if out.Instance != "b" || out.From != at || len(out.Wrote) != 3 || out.Next != "slipway serve --config "+j.config {
		t.Fatalf("it says %s", said)
	}
	text, err := os.ReadFile(j.config)
	if err != nil || strings.Contains(string(text), "slipway:") {
		t.Errorf("the configuration has the password, or is missing: %s, %v", text, err)
	}
	for _, path := range []string{filepath.Join(j.second.Data, "secret.key"), filepath.Join(filepath.Dir(j.config), "database-password")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	j.second.Launch()
	j.second.Process.WaitFor("this one serves on its behalf", 1)
	j.first.awaits(t, 5*time.Second, "a alive leads, b alive")

	// The new instance passes on what a third machine asks, and both are named.
	third := j.invite(client.InvitationWish{Name: "c"})
	if got := strings.Join(third.Addresses, ","); got != "10.77.0.1:8069,10.77.0.2:8069" {
		t.Errorf("the addresses are %s", got)
	}
	j.first.Process.Kill(syscall.SIGKILL)
	j.second.awaits(t, 15*time.Second, "a silent, b alive leads")
	if said := j.first.Process.Text() + j.second.Process.Text(); strings.Contains(said, made.Code) || !strings.Contains(said, "a machine was handed secret.key") {
		t.Errorf("the log has the code, or lacks the hand-over:\n%s", said)
	}
	// The new leader knows the invitations of the former one.
	var all string
	invitations, err := j.second.API.Instances.Invitations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range invitations {
		all += i.ID + " " + i.State + ", "
	}
	if want := third.ID + " open, " + old.ID + " withdrawn, " + made.ID + " used, "; all != want {
		t.Errorf("the new leader has the invitations %q, want %q", all, want)
	}
	if err := j.second.API.Instances.Withdraw(t.Context(), third.ID); err != nil {
		t.Error(err)
	}
	var events string
	page, err := j.second.API.Events(t.Context(), client.EventQuery{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Items {
		events += e.Detail + "\n"
	}
	if !strings.Contains(events, "the machine at 10.77.0.2 was handed secret.key") {
		t.Errorf("no event says that the key was handed over:\n%s", events)
	}
}

// TestPostgreSQLALateMachineIsRefused shows a code after its end. A machine that has used it in time, and then failed a check, is also
// refused.
func TestPostgreSQLALateMachineIsRefused(t *testing.T) {
	needsLong(t, "a minute")
	j := newJoining(t)
	_, err := j.first.API.Instances.Invite(t.Context(), client.InvitationWish{For: inventory.Duration(time.Second)})
	if !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("an invitation for a second: %v", err)
	}
	minute := client.InvitationWish{For: inventory.Duration(time.Minute)}
	made, used := j.invite(minute), j.invite(minute)
	at := strings.Join(made.Addresses, ",")
	ahead := joinAll{Addresses: at, Code: used.Code, Name: "b", Ahead: time.Hour}
	j.refused("a wrong clock", ahead, "the clock of this machine is 1h ahead of")
	time.Sleep(time.Until(used.ExpiresAt) + time.Second)
	j.refused("the machine that has used it", joinAll{Addresses: at, Code: used.Code, Name: "b"}, "the code has expired: it was good until")
	if err := os.Remove(filepath.Join(j.second.Data, "join.proof")); err != nil {
		t.Fatal(err)
	}
	j.refused("a late machine", joinAll{Addresses: at, Code: made.Code, Name: "b"}, "the code has expired: it was good until")
	all, err := j.first.API.Instances.Invitations(t.Context())
	if err != nil || len(all) != 2 || all[0].State != "used" || all[1].State != "expired" {
		t.Errorf("the invitations are %+v, %v", all, err)
	}
}
