package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

const (
	strangersN = 10  // that boot in half an hour
	asideN     = 300 // that only ask for an address
	password   = "correct horse battery"
	ownAddress = "10.77.200.1" // of clients that are no machines
)

// live is what happens in the half hour number i. All of it happens at once, and is over when live returns.
func (d *day) live(i int) {
	d.t.Helper()
	var all sync.WaitGroup
	for name, deed := range map[string]func(ctx context.Context, i int) error{
		"machines": d.replaceMachine, "power": d.cyclePower, "strangers": d.strangersBoot, "discovers": d.discovers,
		"pages": d.lookAtPages, "changes": d.changeThings, "streams": d.listen, "login": d.logIn, "broken clients": d.breakOff,
		"images": d.importImage, "cable": d.pullCable,
	} {
		all.Go(func() {
			if err := deed(d.ctx, i); err != nil {
				d.t.Errorf("half hour %d, %s: %v", i, name, err)
			}
		})
	}
	all.Wait()
	d.await(d.ctx, "every machine runs", d.areUp)
	d.insist(d.ctx, "forget strangers", d.forgetStrangers)
	d.api.Close() // the server gives up idle connections while time passes
}

// replaceMachine deletes the oldest machine and wants another: one host is wiped, and one installed.
func (d *day) replaceMachine(ctx context.Context, _ int) error {
	if _, _, err := d.api.Machines.Remove(ctx, d.names[0], false); err != nil {
		return err
	}
	name := fmt.Sprintf("m%03d", d.next)
	d.next++
	if _, err := d.api.Machines.Create(ctx, inventory.Machine{Name: name, Profile: "debian12", Owner: "soak/" + name}); err != nil {
		return err
	}
	gone := d.names[0]
	d.names = append(d.names[1:], name)
	for ctx.Err() == nil {
		_, err := d.api.Machines.Get(ctx, gone)
		if isNotFound(err) {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("%s is not gone", gone)
}

// cyclePower switches a machine that runs off and on, which boots from its disk then.
func (d *day) cyclePower(ctx context.Context, i int) error {
	m, err := d.api.Machines.Get(ctx, d.names[len(d.names)/2+i%(len(d.names)/4)])
	if err != nil || m.Phase != inventory.MachineRunning {
		return err
	}
	op, err := d.api.Hosts.Power(ctx, string(m.HostID), "cycle")
	for err == nil && op.IsOpen() && ctx.Err() == nil {
		time.Sleep(200 * time.Millisecond)
		op, err = d.api.Operations.Get(ctx, op.ID)
	}
	if err == nil && op.State != inventory.OpDone {
		err = fmt.Errorf("%s: %s", op.State, op.Reason)
	}
	return err
}

// strangersBoot lets machines come that nobody knows, and forgets them.
func (d *day) strangersBoot(ctx context.Context, i int) error {
	r, err := simulate.Run(ctx, simulate.Config{
		Interface: d.victim.net.ClientIf, Namespace: d.victim.net.Client, Hosts: strangersN, Seed: uint64(100 + i%100), Firmware: simulate.Firmwares(),
		Expect: simulate.StageDisk, Timeout: 20 * time.Second, Faults: simulate.Faults{simulate.FaultTFTPAbort: 0.2, simulate.FaultHTTPAbort: 0.1},
	})
	if err != nil {
		return err
	}
	d.strangers += strangersN
	if r.Arrived < r.Hosts {
		var b strings.Builder
		_ = r.WriteSummary(&b)
		return errors.New(b.String())
	}
	return nil
}

// forgetStrangers deletes the hosts that nobody has accepted. The server's own questions to other DHCP servers are among them
// while time passes so fast that it takes them for strangers'.
func (d *day) forgetStrangers(ctx context.Context) error {
	for h, err := range d.api.Hosts.All(ctx, client.Query{State: string(inventory.Discovered)}) {
		if err == nil && strings.HasPrefix(h.Name, "host-") {
			err = d.api.Hosts.Delete(ctx, h.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inClient opens a socket in the machines' namespace.
func (d *day) inClient(open func() error) error {
	return simulate.InNamespace(d.victim.net.Client, open)
}

// discovers is strangers that ask once and are not heard of again.
func (d *day) discovers(context.Context, int) error {
	return d.inClient(func() error {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{})
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		if err := broadcasts(raw, d.victim.net.ClientIf); err != nil {
			return err
		}
		for range asideN {
			b := make([]byte, 300)
			b[0], b[1], b[2] = 1, 1, 6
			b[10] = 0x80 // broadcast
			for at := 29; at < 34; at++ {
				b[at] = byte(rand.Uint32())
			}
			b[28] = 0x0e
			copy(b[236:], []byte{0x63, 0x82, 0x53, 0x63, 53, 1, 1, 255})
			if _, err := conn.WriteTo(b, &net.UDPAddr{IP: net.IPv4bcast, Port: 67}); err != nil {
				return err
			}
			time.Sleep(2 * time.Millisecond)
		}
		return nil
	})
}

// lookAtPages asks for what the pages of the web UI and the commands ask for.
func (d *day) lookAtPages(ctx context.Context, i int) error {
	host := fmt.Sprintf("h%03d", i%d.hosts)
	for range 5 {
		if _, err := d.api.Hosts.List(ctx, client.Query{Limit: 50}); err != nil {
			return err
		}
		if _, err := d.api.Stats(ctx); err != nil {
			return err
		}
		if _, err := d.api.Events(ctx, client.EventQuery{After: -100, Limit: 100}); err != nil {
			return err
		}
	}
	for _, look := range []func() error{
		func() error { _, err := d.api.Hosts.Get(ctx, host); return err },
		func() error { _, err := d.api.Hosts.Timeline(ctx, host, "", 50); return err },
		func() error { _, err := d.api.Hosts.Explain(ctx, host); return err },
		func() error { _, err := d.api.Hosts.Diagnose(ctx, host, ""); return err },
		func() error { return d.api.Hosts.Packets(ctx, host, "", io.Discard) },
		func() error { _, err := d.api.Hosts.Script(ctx, host); return err },
		func() error { _, err := d.api.Hosts.Hardware(ctx, host, 1); return err },
		func() error { _, err := d.api.SelfCheck(ctx); return err },
		func() error { _, err := d.api.Leases.List(ctx, client.Query{Limit: 100}); return err },
		func() error { _, err := d.api.Issues.List(ctx, client.Query{All: true}); return err },
		func() error { return d.api.Export(ctx, "hosts", "csv", io.Discard) },
	} {
		if err := look(); err != nil {
			return err
		}
	}
	if i%12 == 0 {
		return d.api.Backup(ctx, io.Discard)
	}
	return nil
}

// changeThings edits a profile, a host, a reservation and a layer.
func (d *day) changeThings(ctx context.Context, i int) error {
	p, err := d.api.Profiles.Get(ctx, "debian12")
	if err != nil {
		return err
	}
	p.Config = fmt.Sprintf("host: {timezone: Etc/%s}\n", []string{"UTC", "GMT"}[i%2])
	if _, err := d.api.Profiles.Put(ctx, p.Name, p); err != nil {
		return err
	}
	label := strconv.Itoa(i)
	if _, err := d.api.Hosts.Patch(ctx, "h001", wire.HostPatch{Labels: map[string]*string{"soak": &label}}); err != nil {
		return err
	}
	at := netip.AddrFrom4([4]byte{10, 77, 9, byte(1 + i%200)})
	if _, err := d.api.Reservations.Create(ctx, inventory.Reservation{Address: at, MAC: inventory.MAC(fmt.Sprintf("0a:00:00:00:00:%02x", i%200))}); err != nil {
		return err
	}
	if err := d.api.Reservations.Delete(ctx, at.String()); err != nil {
		return err
	}
	_, err = d.api.SetLayer(ctx, "global", fmt.Sprintf("host: {domain: soak%d.example}\n", i%2))
	return err
}

// listen opens event streams: some read, one does not.
func (d *day) listen(ctx context.Context, _ int) error {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range d.api.Follow(ctx, client.EventQuery{After: -500}) {
			}
		})
	}
	deaf, err := d.dialSocket()
	if err != nil {
		return err
	}
	defer deaf.Close()
	if _, err := io.WriteString(deaf, "GET /api/v1/events?follow=true&after=0 HTTP/1.1\r\nHost: slipway\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		return err
	}
	all.Wait()
	return nil
}

func (d *day) dialSocket() (net.Conn, error) {
	return net.Dial("unix", filepath.Join(d.victim.data, "slipway.sock"))
}

// logIn is a person who looks at the hosts and, every other time, forgets to log out.
func (d *day) logIn(ctx context.Context, i int) error {
	if i == 0 {
		if _, err := d.api.Users.Create(ctx, inventory.User{Name: "ada", Grants: inventory.Grants{{Role: inventory.Admin}}}); err != nil {
			return err
		}
		if err := d.api.SetPassword(ctx, "ada", password); err != nil {
			return err
		}
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	to := &http.Transport{DialContext: func(context.Context, string, string) (conn net.Conn, err error) {
		err = simulate.InNamespace(d.victim.net.Server, func() error { conn, err = net.Dial("tcp4", "127.0.0.1:8067"); return err })
		return conn, err
	}}
	defer to.CloseIdleConnections()
	browser := &http.Client{Transport: to, Jar: jar, Timeout: 10 * time.Second}
	call := func(method, path, body string) error {
		r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:8067/api/v1/"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://127.0.0.1:8067")
		res, err := browser.Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		said, _ := io.ReadAll(res.Body)
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("%s %s: %s %s", method, path, res.Status, said)
		}
		return nil
	}
	if err := call("POST", "logins", `{"user":"ada","password":"`+password+`"}`); err != nil {
		return err
	}
	if err := call("GET", "hosts", ""); err != nil || i%2 == 0 {
		return err
	}
	return call("DELETE", "logins", "")
}

// breakOff is clients that begin something and go away.
func (d *day) breakOff(context.Context, int) error {
	return d.inClient(func() error {
		from := net.ParseIP(ownAddress)
		tcp := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: 5 * time.Second}
		udp := net.Dialer{LocalAddr: &net.UDPAddr{IP: from}}
		for n := range 10 {
			conn, err := tcp.Dial("tcp4", "10.77.0.1:80")
			if err != nil {
				return err
			}
			if n%2 == 0 {
				_, _ = io.WriteString(conn, "GET /boot/undionly.kpxe HTTP/1.1\r\nHost:")
			}
			defer conn.Close()
		}
		for range 5 {
			conn, err := udp.Dial("udp4", "10.77.0.1:69")
			if err != nil {
				return err
			}
			_, _ = conn.Write([]byte("\x00\x01undionly.kpxe\x00octet\x00tsize\x000\x00"))
			_ = conn.Close()
		}
		return nil
	})
}

// importImage brings an image, twice a day, and removes it.
func (d *day) importImage(ctx context.Context, i int) error {
	if i%24 != 3 {
		return nil
	}
	path := filepath.Join(d.t.TempDir(), "linux")
	if err := os.WriteFile(path, bytes.Repeat([]byte(strconv.Itoa(i)), 1<<20), 0o644); err != nil {
		return err
	}
	name := fmt.Sprintf("toy%d", i)
	job, err := d.api.Import(ctx, client.ImportRequest{Name: name, Files: []client.ImportFile{{Role: inventory.RoleKernel, Name: "linux", Source: path}}})
	for err == nil && job.State != "done" && job.State != "failed" && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		job, err = d.api.Job(ctx, job.ID, 0)
	}
	if err == nil {
		err = d.api.Images.Delete(ctx, name)
	}
	if err == nil {
		_, err = d.api.PruneArtefacts(ctx, false)
	}
	return err
}

// pullCable takes the server's link away for a moment, four times a day, before the half hour's boots.
func (d *day) pullCable(_ context.Context, i int) error {
	if i%12 != 5 {
		return nil
	}
	for _, state := range []string{"down", "up"} {
		cmd := d.victim.net.Command(context.Background(), d.victim.net.Server, "ip", "link", "set", d.victim.net.ServerIf, state)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		time.Sleep(300 * time.Millisecond)
	}
	return nil
}
