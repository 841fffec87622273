package attack_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
)

// wakes is how often the leader is paused and wakes up.
const wakes = 10

// TestPostgreSQLALeaderThatWakesUpChangesNothing pauses the leader until the other server leads, again and again. In the moment in which it
// wakes up, both are asked to change something, to switch a machine, and for addresses. Only the new leader does it.
func TestPostgreSQLALeaderThatWakesUpChangesNothing(t *testing.T) {
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("takes three minutes; run: make test-long RUN=" + t.Name())
	}
	all := victims(t, both)
	leads, other := all[0], all[1]
	ctx := t.Context()
	o := &outlet{}
	var l net.Listener
	leads.Lab.Inside(leads.Net.Client, func() (err error) { l, err = net.Listen("tcp", attacker+":9000"); return err })
	s := &http.Server{Handler: o}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	boots(leads, 1)
	h := leads.Hosts()[0]
	if _, err := leads.API.Hosts.Accept(ctx, h.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := leads.API.Hosts.SetBMC(ctx, h.Name, client.SetBMC{
		Driver: inventory.Webhook, Address: "http://" + attacker + ":9000",
		Options: map[string]string{
			"on.path": "/on", "off.path": "/off", "boot.path": "/boot/{{.Device}}", "status.path": "/power", "status.pointer": "/power",
		},
	}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	holder := map[string]string{} // of each address that was acknowledged
	for round := range wakes {
		if err := leads.Process.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		other.Process.WaitFor("API on", 1)
		o.forget()
		verb := []string{"on", "off"}[round%2]

		// What the sleeping server finds when it wakes up.
		var work sync.WaitGroup
		old := map[string]string{
			"/acceptrules":                fmt.Sprintf(`{"name":"old-%d","selector":"mac"}`, round),
			"/hosts/" + h.Name + "/power": `{"action":"` + verb + `"}`,
		}
		for path, body := range old {
			work.Go(func() {
				said, _ := leads.Lab.Try(2*requestLimit, "ip", "netns", "exec", leads.Net.Server, "curl", "-s", "-m", "15",
					"-w", " %{http_code}", "-H", "Content-Type: application/json", "-d", body,
					"--unix-socket", filepath.Join(leads.Data, "slipway.sock"), "http://slipway/api/v1"+path)
				if strings.Contains(said[max(0, len(said)-4):], " 2") {
					t.Errorf("round %d: %s was done by a server that had lost the engine: %s", round, path, said)
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
		work.Go(func() {
			if err := leads.Process.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			rule := inventory.AcceptRule{Name: fmt.Sprint("new-", round), Selector: "mac"}
			if _, err := other.API.AcceptRules.Create(ctx, rule); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		})
		work.Go(func() {
			if _, err := other.API.Hosts.Power(ctx, h.Name, verb); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		})
		work.Go(func() {
			other.Good(other.Boot(ctx, simulate.Config{
				Hosts: 3, Seed: uint64(round + 2), Expect: simulate.StageWaiting, Acknowledged: func(a simulate.Lease) {
					mu.Lock()
					defer mu.Unlock()
					if was := holder[a.Address.String()]; was != "" && was != a.MAC {
						t.Errorf("round %d: %s is of %s, and was given to %s", round, a.Address, was, a.MAC)
					}
					holder[a.Address.String()] = a.MAC
				},
			}))
		})
		work.Wait()
		o.awaits(t, other.Net.Address.Addr().String()+" /"+verb)
		select {
		case err := <-leads.Process.Done:
			leads.Process.Done <- err
		case <-time.After(2 * requestLimit):
			t.Fatalf("round %d: the server that has lost the engine goes on", round)
		}
		leads.Launch()
		leads.Process.WaitFor("this one serves on its behalf", 1)
		leads, other = other, leads
	}
	names := map[string]bool{}
	for r, err := range leads.API.AcceptRules.All(ctx, client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		names[r.Name] = true
	}
	for round := range wakes {
		if names[fmt.Sprint("old-", round)] || !names[fmt.Sprint("new-", round)] {
			t.Errorf("round %d: the rules are %v", round, names)
		}
	}
	if len(holder) != 3*wakes {
		t.Errorf("%d addresses were acknowledged, want %d", len(holder), 3*wakes)
	}
}
