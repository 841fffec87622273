package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
)

// eventAsks is how often each question is asked.
const eventAsks = 200

// uiEvents measures lists of events and timelines with 10,000 hosts and 1,000,000 events; what counts is the slowest question's p99. The
// peer is the promise for any list.
func uiEvents(ctx context.Context, e *Env) (f Figure, err error) {
	f = Figure{Name: "ui-events", IsCost: true, Unit: "ms-p99", PeerName: "promised", Peer: uiList}
	if e.Slipway == "" {
		return f, nil
	}
	hosts, events := 10_000, 1_000_000
	if e.Quick {
		hosts, events = 1000, 100_000
	}
	dir, err := e.freshDir("events")
	if err != nil {
		return f, err
	}
	paths, err := history(ctx, dir, hosts, events)
	if err != nil {
		return f, err
	}
	n, err := simulate.NewNet("slipway-bench", netip.MustParsePrefix(serverAddress+"/8"))
	if err != nil {
		return f, err
	}
	defer n.Close()
	socket := filepath.Join(dir, "slipway.sock")
	cmd := pinned(ctx, bothCPUs, n.Server, e.Slipway, "serve", "--interface", "vs", "--data-dir", dir, "--mode", "off", "--log-level", "warn")
	p, err := startWhen(cmd, dir, socket, func(int) bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	if err != nil {
		return f, err
	}
	defer p.stop()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	for _, ask := range paths {
		var took []time.Duration
		next := ""
		for i := range eventAsks {
			if i%ask.pages == 0 {
				next = ""
			}
			began := time.Now()
			if next, err = list(ctx, client, ask.path, next); err != nil {
				return f, err
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		ms := func(i int) float64 { return float64(took[i].Microseconds()) / 1000 }
		p99 := ms(eventAsks*99/100 - 1)
		e.say("%-34s median %.1f ms, p99 %.1f ms", ask.name, ms(eventAsks/2), p99)
		f.Ours = max(f.Ours, p99)
	}
	return f, nil
}

// question is a list that a person looks at; pages is how many are turned before it begins anew.
type question struct {
	name, path string
	pages      int
}

// list asks for a page and returns the key of the next.
func list(ctx context.Context, c *http.Client, path, after string) (next string, err error) {
	if after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://slipway/api/v1"+path, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", path, answer.Status, b)
	}
	var page struct{ Next string }
	return page.Next, json.Unmarshal(b, &page)
}

// history fills a database with hosts and their events, and one host with a hundredth of them all. It returns what is asked.
func history(ctx context.Context, dir string, hosts, events int) (_ []question, err error) {
	f, err := newFleet(ctx, dir, hosts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.store.Close()) }()
	began := time.Now().Add(-24 * time.Hour)
	kinds := []string{inventory.EventDHCPOffer, inventory.EventDHCPAck, "boot.fetch", "boot.script"}
	const perBoot, perWrite = 20, 20_000
	var last int64
	for at := 0; at < events; at += perWrite {
		err := f.store.Write(ctx, func(tx inventory.Tx) error {
			for i := at; i < min(events, at+perWrite); i++ {
				boot := i / perBoot
				host := boot % hosts
				if boot%100 == 99 {
					host = 0 // one machine boots over and over
				}
				now := began.Add(24 * time.Hour * time.Duration(i) / time.Duration(events))
				session := inventory.SessionID(fmt.Sprintf("%032x", boot))
				if i%perBoot == 0 {
					b := inventory.BootSession{
						ID: session, HostID: f.hosts[host].ID, MAC: f.hosts[host].NICs[0].MAC, Step: "script", Outcome: "disk", Boot: "disk",
						StartedAt: now, LastAt: now, EndedAt: now,
					}
					if err := tx.SaveSession(b); err != nil {
						return err
					}
				}
				e := inventory.Event{At: now, Kind: kinds[i%len(kinds)], HostID: f.hosts[host].ID, SessionID: session, Detail: "an event of the benchmark"}
				if i%50_000 == 0 {
					e.Kind = "image.imported" // hardly ever
				}
				if err := tx.AddEvent(&e); err != nil {
					return err
				}
				last = e.ID
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	busy, usual := f.hosts[0].Name, f.hosts[hosts/2].Name
	before := func(id int64) string { return "&before=" + strconv.FormatInt(id, 10) }
	return []question{
		{"a host's timeline", "/hosts/" + usual + "/timeline?limit=10", 1},
		{"the busiest host's timeline", "/hosts/" + busy + "/timeline?limit=10", 1},
		{"40 pages into its timeline", "/hosts/" + busy + "/timeline?limit=10", 40},
		{"all events, newest first", "/events?limit=100" + before(last), 1},
		{"all events, from the middle", "/events?limit=100" + before(last/2), 1},
		{"events of a host", "/events?limit=100&host=" + usual + before(last), 1},
		{"a kind of the busiest host", "/events?limit=100&host=" + busy + "&kind=" + kinds[1] + before(last), 1},
		{"a kind that it hardly ever had", "/events?limit=100&host=" + busy + "&kind=image" + before(last), 1},
		{"a kind that it never had", "/events?limit=100&host=" + busy + "&kind=cluster" + before(last), 1},
		{"events of a kind", "/events?limit=100&kind=" + kinds[1] + before(last), 1},
		{"events of a part of the kinds", "/events?limit=100&kind=dhcp" + before(last/2), 1},
		{"events that hardly ever happen", "/events?limit=100&kind=image" + before(last), 1},
		{"events that never happened", "/events?limit=100&kind=cluster" + before(last), 1},
	}, nil
}
