package ra

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// TestSolicitationsAreAnswered solicits as a booting machine does, across a cable between two namespaces.
func TestSolicitationsAreAnswered(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") == "" || os.Geteuid() != 0 {
		t.Skip("needs root and network namespaces; run: make test-net RUN=" + t.Name())
	}
	ours, theirs := fmt.Sprintf("ra%d-a", os.Getpid()), fmt.Sprintf("ra%d-b", os.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, ns := range []string{ours, theirs} {
		ip("netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		for _, key := range []string{"default", "all"} { // no wait for other users of the address
			ip("netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf."+key+".accept_dad=0")
		}
	}
	ip("link", "add", "srv0", "netns", ours, "type", "veth", "peer", "name", "eth0", "netns", theirs)
	ip("-n", ours, "link", "set", "srv0", "up")
	ip("-n", theirs, "link", "set", "eth0", "up")

	// Each side stays in one thread, so that its sockets are in its namespace.
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go inside(ours, served, func() error {
		s := New(Config{Interfaces: []string{"srv0"}, Log: slog.New(slog.DiscardHandler)})
		ifi, own, err := waitLinkLocal("srv0")
		if err != nil {
			return err
		}
		conn, err := listen(ctx, ifi)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		served <- nil
		_ = s.read(conn, ifi, own)
		return nil
	})
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go inside(theirs, asked, func() error { return solicit("eth0") })
	if err := <-asked; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// inside runs fn in a namespace, in a thread that ends with it.
func inside(ns string, done chan<- error, fn func() error) {
	runtime.LockOSThread()
	f, err := os.Open("/run/netns/" + ns)
	if err != nil {
		done <- err
		return
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		done <- err
		return
	}
	done <- fn()
}

func waitLinkLocal(name string) (ifi *net.Interface, own netip.Addr, err error) {
	for range 100 {
		if ifi, own, err = linkLocal(name); err == nil {
			return ifi, own, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, own, err
}

// solicit sends a router solicitation and checks the answer.
func solicit(name string) error {
	ifi, _, err := waitLinkLocal(name)
	if err != nil {
		return err
	}
	raw, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if err != nil {
		return err
	}
	defer raw.Close()
	conn := ipv6.NewPacketConn(raw)
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeRouterAdvertisement)
	if err := conn.SetICMPFilter(&only); err != nil {
		return err
	}
	if err := conn.SetControlMessage(ipv6.FlagHopLimit|ipv6.FlagDst, true); err != nil {
		return err
	}
	if err := conn.SetMulticastHopLimit(hopLimit); err != nil {
		return err
	}
	to := &net.IPAddr{IP: net.IPv6linklocalallrouters, Zone: name}
	if _, err := conn.WriteTo([]byte{solicitation, 0, 0, 0, 0, 0, 0, 0}, &ipv6.ControlMessage{IfIndex: ifi.Index}, to); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	buf := make([]byte, 1500)
	n, cm, _, err := conn.ReadFrom(buf)
	if err != nil {
		return fmt.Errorf("wait for an advertisement: %w", err)
	}
	clear(buf[2:4]) // the checksum; the kernel has checked it
	if got, want := fmt.Sprintf("%x", buf[:n]), fmt.Sprintf("%x", advertisement(nil, nil)); got != want || cm.HopLimit != hopLimit {
		return fmt.Errorf("got %s with hop limit %d, want %s with 255", got, cm.HopLimit, want)
	}
	if !cm.Dst.IsLinkLocalUnicast() {
		return fmt.Errorf("answered to %s, want the asking machine alone", cm.Dst)
	}
	return nil
}
