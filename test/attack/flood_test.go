package attack_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

// longestFlood ends a flood that the other side does not take.
const longestFlood = 40 * time.Second

// flood opens connections from a namespace that say nothing, one for each address of from, until they are n.
func flood(a *netlab.Appliance, ns, at string, from []string, n int) (open []net.Conn) {
	a.Lab.T.Helper()
	a.Lab.Inside(ns, func() error {
		until := time.Now().Add(longestFlood) // where connections are not taken, each waits for its whole limit
		for i := 0; i < n && time.Now().Before(until); i++ {
			d := net.Dialer{Timeout: 2 * time.Second}
			if len(from) > 0 {
				d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from[i%len(from)])}
			}
			c, err := d.Dial("tcp", at)
			if err != nil {
				continue // whoever is flooded may well refuse
			}
			open = append(open, c)
		}
		return nil
	})
	a.Lab.T.Cleanup(func() {
		for _, c := range open {
			_ = c.Close()
		}
	})
	return open
}

// boots lets a machine boot beside an attack: it is the unharmed neighbour.
func boots(a *netlab.Appliance, seed uint64) {
	a.Lab.T.Helper()
	a.Good(a.Boot(context.Background(), simulate.Config{Hosts: 3, Seed: seed, Expect: simulate.StageWaiting}))
}

// said reports whether an open issue of a type says some words.
func said(a *netlab.Appliance, kind, words string) bool {
	for i, err := range a.API.Issues.All(a.Lab.T.Context(), client.Query{}) {
		if err != nil {
			a.Lab.T.Fatal(err)
		}
		if i.Type == kind && strings.Contains(i.Cause, words) {
			return true
		}
	}
	return false
}

// TestAFloodOfIdleConnectionsAtTheAdminDoorHarmsNobody keeps more connections open than the server may have files, and opens
// each anew that is closed: while it goes on, machines boot, and the admin door answers.
func TestAFloodOfIdleConnectionsAtTheAdminDoorHarmsNobody(t *testing.T) {
	a := victim(t, fewEnv)
	ctx, stop := context.WithCancel(t.Context())
	var flooders sync.WaitGroup
	var opened atomic.Int64
	defer flooders.Wait()
	defer stop()
	flooders.Go(func() {
		a.Lab.Inside(a.Net.Server, func() error { // all dials on one thread, which is in the namespace
			var open []net.Conn
			for ctx.Err() == nil {
				c, err := (&net.Dialer{Timeout: time.Second}).Dial("tcp", adminDoor)
				if err != nil {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				opened.Add(1)
				if open = append(open, c); len(open) > 700 {
					_ = open[0].Close()
					open = open[1:]
				}
			}
			for _, c := range open {
				_ = c.Close()
			}
			return nil
		})
	})
	for until := time.Now().Add(10 * time.Second); opened.Load() < 700 && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
	}
	if opened.Load() < 700 {
		t.Fatalf("only %d connections were made: this test attacks nothing", opened.Load())
	}
	for seed, until := uint64(1), time.Now().Add(20*time.Second); time.Now().Before(until); seed++ {
		boots(a, seed) // the server looks at its interfaces every few seconds, for which it opens files
	}
	if said(a, inventory.IssueInterface, "") {
		t.Error("an interface is said to be missing")
	}
	isAnswered := false
	for range 10 {
		code, _ := a.Lab.Try(requestLimit, "ip", "netns", "exec", a.Net.Server, "curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", "http://"+adminDoor+"/healthz")
		isAnswered = isAnswered || strings.TrimSpace(code) == "200"
	}
	if !isAnswered {
		t.Error("the admin door answers nobody beside the flood")
	}
}

func TestNinetyAddressesDoNotCloseTheBootDoor(t *testing.T) {
	a := victim(t, filesEnv)
	var from []string
	for n := range 90 {
		ip := fmt.Sprintf("10.77.200.%d", n+10)
		a.Lab.In(a.Net.Client, "ip", "address", "add", ip+"/16", "dev", a.Net.ClientIf)
		from = append(from, ip)
	}
	flood(a, a.Net.Client, "10.77.0.1:80", from, 9000)
	if code := status(a, "http://10.77.0.1/boot/script?mac=52:54:00:00:00:01"); code == "000" {
		t.Error("the boot door answers another address nothing beside the flood")
	}
	boots(a, 2)
}

func TestAStrangerThatReportsForEverFillsNoDatabase(t *testing.T) {
	a := victim(t)
	boots(a, 3)
	var s inventory.BootSession
	for one, err := range a.API.Sessions.All(t.Context(), client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		s = one
	}
	a.Lab.In(a.Net.Client, "ip", "address", "add", s.Address.String()+"/16", "dev", a.Net.ClientIf)
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: inside(a, a.Net.Client, s.Address.String())}}
	refused := 0
	for range 600 {
		r, err := c.Post("http://10.77.0.1/boot/"+string(s.ID)+"/report?step=progress", "text/plain", strings.NewReader(strings.Repeat("x", 60<<10)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "" {
			refused++
		}
	}
	if refused < 300 {
		t.Errorf("%d of 600 reports were refused", refused)
	}
	for range 20 {
		if said(a, inventory.IssueShed, "events and reports") {
			return
		}
		time.Sleep(time.Second)
	}
	t.Error("no issue says that something was not stored")
}
