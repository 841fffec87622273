// Package vm holds the tests on real firmware: machines under libvirt that boot from a real slipway serve over the
// wire, each as far as a Linux kernel that reports back or its own disk's loader. It holds no test without a machine,
// but for those of its own disk images.
package vm

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab"
	"slipway.dev/slipway/web/client"
)

// rack is the one rack that all tests share; the first that needs it builds it, TestMain takes it down.
var rack struct {
	once sync.Once
	lab  *lab.Lab
	err  error
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(rackDirVar); dir != "" {
		fmt.Fprintln(os.Stderr, beRack(dir))
		os.Exit(1)
	}
	flag.Parse()
	// Machines wait more than they work, so more of them than processors can be on at once.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	if rack.lab != nil {
		if err := rack.lab.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "take the rack down:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// grubPath is the loader on the UEFI machines' disks; from Debian's package grub-efi-amd64-signed.
const grubPath = "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"

// open returns the shared rack: the lab's three machines, and for each way back to disk one whose disk boots.
func open(t *testing.T) *lab.Lab {
	t.Helper()
	needVM(t)
	rack.once.Do(func() {
		cfg := lab.Config{Out: os.Stderr, Executable: os.Getenv("SLIPWAY_BIN")}
		if cfg.Executable == "" {
			cfg.Executable, rack.err = filepath.Abs("../../bin/slipway") // make test-vm has built it
		}
		dir := t.TempDir()
		grub, err := os.ReadFile(grubPath)
		if err != nil {
			rack.err = fmt.Errorf("needs package grub-efi-amd64-signed: %w", err)
			return
		}
		uefi, err := uefiDisk(grub)
		if err != nil {
			rack.err = err
			return
		}
		disks := map[inventory.Firmware]string{
			inventory.BIOS: writeDisk(t, dir, "bios.raw", biosDisk()), inventory.UEFI: writeDisk(t, dir, "uefi.raw", uefi),
		}
		cfg.Specs = lab.Specs(3 + len(diskCases()))
		for i, c := range diskCases() {
			s := &cfg.Specs[3+i]
			s.Name, s.Firmware, s.Disk = c.machine(), c.firmware, disks[c.firmware]
			s.NoPXEv6 = c.firmware == inventory.UEFI
		}
		rack.lab, rack.err = lab.Open(context.Background(), cfg)
	})
	if rack.err != nil {
		t.Fatal(explain(rack.err))
	}
	return rack.lab
}

// explain adds the hint to an error that has one.
func explain(err error) string {
	var e *inventory.Error
	if errors.As(err, &e) && e.Hint != "" {
		return err.Error() + "\n" + e.Hint
	}
	return err.Error()
}

// machine is a machine under test.
type machine struct {
	*lab.Machine
	t   *testing.T
	api *client.Client
}

// start switches a machine on for the time of the test, and shows what is known of it if the test fails.
func start(t *testing.T, l *lab.Lab, name string) machine {
	t.Helper()
	for _, m := range l.Rack.Machines() {
		if m.Name != name {
			continue
		}
		if err := m.Start(); err != nil {
			t.Fatal(explain(err))
		}
		t.Cleanup(func() {
			if err := m.Stop(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("server's log:\n%s", l.Log(20))
			}
		})
		mt := machine{Machine: m, t: t, api: l.API}
		t.Cleanup(mt.show)
		return mt
	}
	t.Fatalf("the rack has no machine %s", name)
	return machine{}
}

// show logs the machine's timeline and console after a failure.
func (m machine) show() {
	if !m.t.Failed() {
		return
	}
	page, err := m.api.Events(context.Background(), client.EventQuery{Host: string(m.MAC)})
	if err != nil {
		m.t.Logf("timeline of %s: %v", m.Name, err)
	}
	for _, ev := range page.Items {
		m.t.Logf("%s  %-18s %s", ev.At.Format("15:04:05.000"), ev.Kind, ev.Detail)
	}
	console, err := m.Console()
	m.t.Logf("console of %s (%v):\n%s", m.Name, err, lab.Readable(console, 30))
}

// until asks again and again until ok says so, or fails the test after that long.
func (m machine) until(what string, patience time.Duration, ok func(ctx context.Context) bool) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			m.t.Fatalf("%s: not within %s: %s", m.Name, patience, what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// session returns the machine's latest boot session; ok is false while there is none.
func (m machine) session(ctx context.Context) (s inventory.BootSession, ok bool) {
	page, err := m.api.Sessions.List(ctx, client.Query{Host: string(m.MAC), Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return s, false
	}
	return page.Items[0], true
}

// events returns what happened in a session, in order.
func (m machine) events(s inventory.SessionID) []inventory.Event {
	m.t.Helper()
	page, err := m.api.Events(m.t.Context(), client.EventQuery{Session: s, Limit: 1000})
	if err != nil {
		m.t.Fatal(err)
	}
	return page.Items
}

// inOrder reports the first of the wanted kinds that does not follow the ones before it, "" if all do.
func inOrder(events []inventory.Event, want []string) (missing string) {
	i := 0
	for _, ev := range events {
		if i < len(want) && ev.Kind == want[i] {
			i++
		}
	}
	if i < len(want) {
		return want[i]
	}
	return ""
}

func detailOf(events []inventory.Event, kind string) string {
	for _, ev := range events {
		if ev.Kind == kind {
			return ev.Detail
		}
	}
	return ""
}

func TestAMachineArrives(t *testing.T) {
	withLoader := []string{inventory.EventLoaderSent, inventory.EventScriptAsked}
	for _, c := range []struct {
		machine  string
		firmware inventory.Firmware
		loader   []string // steps between address and decision
		through  string   // how the loader came
	}{
		{"bios", inventory.BIOS, []string{inventory.EventScriptAsked}, ""},
		{"uefi", inventory.UEFI, withLoader, "snponly.efi over tftp"},
		{"uefi-http", inventory.UEFIHTTP, withLoader, "snponly.efi over http"},
	} {
		t.Run(c.machine, func(t *testing.T) {
			t.Parallel()
			m := start(t, open(t), c.machine)
			var h inventory.Host
			m.until("it is discovered", 60*time.Second, func(ctx context.Context) bool {
				var err error
				h, err = m.api.Hosts.Get(ctx, string(m.MAC))
				return err == nil
			})
			if h.State != inventory.Discovered {
				t.Fatalf("state %s before it is accepted", h.State)
			}
			if _, err := m.api.Hosts.Accept(t.Context(), string(m.MAC)); err != nil {
				t.Fatal(explain(err))
			}
			var s inventory.BootSession
			m.until("its Linux reports", 3*time.Minute, func(ctx context.Context) bool {
				s, _ = m.session(ctx)
				return s.Outcome != ""
			})
			if s.Outcome != inventory.OutcomeArrived || s.Profile != lab.ProfileName || s.Image != lab.ImageName {
				t.Fatalf("session %+v", s)
			}
			want := slices.Concat([]string{
				inventory.EventSessionStarted, inventory.EventDHCPDiscover, inventory.EventDHCPOffer,
				inventory.EventDHCPRequest, inventory.EventDHCPAck,
			}, c.loader, []string{
				inventory.EventBootDecided, inventory.EventArtefactSent,
				inventory.EventArtefactSent, inventory.EventArtefactSent, inventory.EventReported, inventory.EventSessionEnded,
			})
			var events []inventory.Event
			t.Cleanup(func() {
				for _, ev := range events {
					if t.Failed() {
						t.Log(ev.At.Format(time.TimeOnly+".000"), ev.Kind, ev.Detail)
					}
				}
			})
			m.until("its timeline holds "+strings.Join(want, ", ")+" in this order", 20*time.Second, func(context.Context) bool {
				events = m.events(s.ID)
				return inOrder(events, want) == ""
			})
			if got := detailOf(events, inventory.EventLoaderSent); !strings.HasPrefix(got, c.through) {
				t.Errorf("loader: %q, want %q", got, c.through)
			}
			h, err := m.api.Hosts.Get(t.Context(), string(m.MAC))
			if err != nil {
				t.Fatal(err)
			}
			if h.State != inventory.Active || h.Firmware != c.firmware || h.Arch != inventory.X8664 || h.Serial != m.Serial ||
				h.AssetTag != m.AssetTag || h.Manufacturer != lab.Manufacturer || h.UUID != m.UUID {
				t.Errorf("what is known of it: %+v", h)
			}
			m.until("its console says so", 10*time.Second, func(context.Context) bool {
				console, _ := m.Console()
				return bytes.Contains(console, []byte("is up: Linux 6.1."))
			})
			t.Logf("%s: %s", c.machine, timing(events))
		})
	}
}

// timing says when a boot passed its events, in seconds after its first packet.
func timing(events []inventory.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, " %s=%.1f", ev.Kind, ev.At.Sub(events[0].At).Seconds())
	}
	return b.String()
}

// diskCase is a firmware and a way back to its own disk; the empty way is the one that Slipway chooses.
type diskCase struct {
	firmware inventory.Firmware
	way      inventory.DiskBoot
}

func (c diskCase) machine() string {
	if c.way == "" {
		return "disk-" + string(c.firmware)
	}
	return "disk-" + string(c.firmware) + "-" + string(c.way)
}

func diskCases() []diskCase {
	return []diskCase{
		{inventory.BIOS, ""},
		{inventory.BIOS, inventory.DiskSanboot},
		{inventory.BIOS, inventory.DiskExit},
		{inventory.UEFI, ""},
		{inventory.UEFI, inventory.DiskExit},
	}
}

func TestAMachineGoesBackToItsOwnDisk(t *testing.T) {
	for _, c := range diskCases() {
		t.Run(c.machine(), func(t *testing.T) {
			if c.firmware == inventory.UEFI && c.way == inventory.DiskExit {
				needLong(t) // UEFI machines get the same loader without a way
			}
			t.Parallel()
			l := open(t)
			i := slices.IndexFunc(l.Rack.Machines(), func(m *lab.Machine) bool { return m.Name == c.machine() })
			_, err := l.API.Hosts.Create(t.Context(), inventory.Host{
				Name: c.machine(), State: inventory.Available, IsAdopted: true, DiskBoot: c.way,
				NICs: []inventory.NIC{{MAC: l.Rack.Machines()[i].MAC}},
			})
			if err != nil {
				t.Fatal(explain(err))
			}
			m := start(t, l, c.machine())
			began := time.Now()
			m.until("its disk's own loader runs", 5*time.Minute, func(context.Context) bool {
				console, _ := m.Console()
				return bytes.Contains(console, []byte(marker))
			})
			t.Logf("%s: disk's loader after %.1f s", c.machine(), time.Since(began).Seconds())
			m.until("the decision is in its timeline", 10*time.Second, func(ctx context.Context) bool {
				s, ok := m.session(ctx)
				return ok && s.Boot == "disk" && strings.Contains(detailOf(m.events(s.ID), inventory.EventBootDecided), "adopted")
			})
		})
	}
}
