package diagnosis

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

// captured is a capture of real firmware as a ring would keep it for the machine.
func captured(t testing.TB, name string) []trace.Packet {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "captures", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := trace.ParsePCAP(b)
	if err != nil {
		t.Fatal(err)
	}
	r := trace.NewRing(trace.Config{IsOurs: func(a netip.Addr) bool { return a == capturedServer }})
	for _, f := range frames {
		r.Add(f)
	}
	return r.Packets("52:54:00:aa:00:01", time.Time{})
}

var capturedServer = netip.MustParseAddr("10.98.0.1")

// upTo cuts a capture before the first packet that is so.
func upTo(is func(p trace.Packet) bool) func([]trace.Packet) []trace.Packet {
	return func(all []trace.Packet) []trace.Packet {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[:i]
		}
		return nil
	}
}

// less takes packets out of a capture.
func less(is func(p trace.Packet) bool) func([]trace.Packet) []trace.Packet {
	return func(all []trace.Packet) []trace.Packet { return slices.DeleteFunc(slices.Clone(all), is) }
}

func isReply(kind uint8) func(trace.Packet) bool {
	return func(p trace.Packet) bool { return p.DHCP != nil && p.DHCP.IsReply && p.DHCP.Type == kind }
}

func isAsk(stage pxe.Stage, kind uint8) func(trace.Packet) bool {
	return func(p trace.Packet) bool {
		return p.DHCP != nil && !p.DHCP.IsReply && p.DHCP.Type == kind && p.DHCP.Client.Stage == stage
	}
}

func isRead(p trace.Packet) bool { return p.TFTP != nil && p.TFTP.Op == trace.RRQ }

func isTCP(p trace.Packet) bool { return p.TCP != nil }

func isMethod(m string) func(trace.Packet) bool {
	return func(p trace.Packet) bool { return p.TCP != nil && p.TCP.Method == m }
}

func refused(why lease.Reason) func(*Case) {
	return func(c *Case) { c.Notes = []trace.Note{{At: c.Now.Add(-time.Minute), Reason: string(why)}} }
}

func inProxy(c *Case) { c.Subnet.Mode = inventory.ModeProxy }

// Real firmware, whole and with packets taken out as a network would: the first cause is what happened.
func TestCapturesOfRealFirmware(t *testing.T) {
	hasTFTP := func(p trace.Packet) bool { return p.Kind == trace.TFTP }
	// The bench's script ended with a file that its server did not have.
	notThere := func(p trace.Packet) bool { return p.TCP != nil && p.TCP.Status == 404 }
	status200 := func(p trace.Packet) bool { return p.TCP != nil && p.TCP.Status == 200 }
	for _, x := range []struct {
		title, capture string
		cut            func([]trace.Packet) []trace.Packet
		edit           func(*Case)
		want           []string // the causes in order; none: nothing is wrong
	}{
		{title: "nobody answers", capture: "ovmf-pxe-no-answer", want: []string{"unanswered"}},
		{title: "nobody answers, no subnet", capture: "ovmf-pxe-no-answer", edit: refused(lease.NoSubnet), want: []string{"no-subnet"}},
		{title: "nobody answers, mode off", capture: "ovmf-pxe-no-answer", edit: refused(lease.IsOff), want: []string{"subnet-off"}},
		{title: "the first three DISCOVERs are lost to spanning tree", capture: "ovmf-pxe-no-answer", cut: less(func(p trace.Packet) bool {
			return p.DHCP != nil && p.DHCP.Secs < 28
		}), want: []string{"slow-port", "unanswered"}},
		{title: "only PXE over IPv6", capture: "ovmf-pxe-no-answer", cut: less(func(p trace.Packet) bool { return p.DHCP != nil }), want: []string{"only-ipv6"}},
		{title: "option 60 without 43", capture: "ovmf-pxe-class60-only", want: []string{"offer-without-control", "pxe-port-closed"}},
		{title: "option 60 with 43", capture: "ovmf-pxe-class60-43", cut: less(notThere), want: []string{"no-script", "no-router"}},
		{title: "proxy with siaddr 0", capture: "ipxe-rom-proxy-no-siaddr", edit: inProxy, want: []string{"proxy-without-server"}},
		{title: "the script names next-server", capture: "ovmf-proxy-4011", edit: inProxy, want: []string{"other-next-server"}},
		{title: "the firmware ignores the proxy", capture: "ovmf-proxy-4011", edit: inProxy, cut: upTo(func(p trace.Packet) bool { return p.Dst.Port() == 4011 }), want: []string{"proxy-ignored"}},
		{title: "4011 is closed", capture: "ovmf-proxy-4011", edit: inProxy, cut: func(all []trace.Packet) []trace.Packet {
			i := slices.IndexFunc(all, func(p trace.Packet) bool { return p.Dst.Port() == 4011 })
			again := all[i]
			again.At = again.At.Add(time.Second)
			return append(slices.Clone(all[:i+1]), again)
		}, want: []string{"pxe-port-closed"}},
		{title: "the other server has the same packets in mode full", capture: "ovmf-proxy-4011", cut: upTo(func(p trace.Packet) bool { return p.Dst.Port() == 4011 }), want: []string{"other-server-won", "proxy-ignored"}},
		{title: "the proxy alone", capture: "ovmf-proxy-4011", edit: inProxy, cut: func(all []trace.Packet) []trace.Packet {
			all = upTo(isAsk(pxe.StageFirmware, 3))(all)
			return less(func(p trace.Packet) bool {
				return p.DHCP != nil && p.DHCP.IsReply && p.DHCP.Server != capturedServer
			})(all)
		}, want: []string{"no-address-server"}},
		{title: "503 again and again", capture: "ipxe-rom-503", cut: upTo(status200), want: []string{"http-busy"}},
		{title: "no router, no 175.176", capture: "ovmf-pxe-stock", cut: less(notThere), want: []string{"proxy-wait"}},
		{title: "no router", capture: "ovmf-pxe-no-pxedhcp", cut: less(notThere), want: []string{"no-router"}},
		{title: "the answers are lost", capture: "ovmf-pxe-stock", cut: func(all []trace.Packet) []trace.Packet {
			all = upTo(isAsk(pxe.StageFirmware, 3))(all)
			again := all[slices.IndexFunc(all, isAsk(pxe.StageFirmware, 1))]
			again.At = again.At.Add(4 * time.Second)
			return append(slices.Clone(all), again)
		}, want: []string{"offer-lost"}},
		{title: "leases cannot be stored", capture: "ovmf-pxe-stock", cut: upTo(isReply(5)), want: []string{"ack-missing"}},
		{title: "the loader is not fetched", capture: "ovmf-pxe-stock", cut: upTo(isRead), want: []string{"no-fetch"}},
		{title: "the probe, then nothing", capture: "ovmf-pxe-stock", cut: func(all []trace.Packet) []trace.Packet {
			i := slices.IndexFunc(all, isRead)
			j := i + 1 + slices.IndexFunc(all[i+1:], isRead)
			return all[:j]
		}, want: []string{"probe-only"}},
		{title: "TFTP is dropped here", capture: "ovmf-pxe-snponly-small-ra", cut: func(all []trace.Packet) []trace.Packet {
			all = upTo(isAsk(pxe.StageIPXE, 1))(all)
			return less(func(p trace.Packet) bool { return hasTFTP(p) && !isRead(p) })(all)
		}, want: []string{"tftp-unanswered"}},
		{title: "the loader came, and nothing after it", capture: "ovmf-pxe-snponly-small-ra", cut: upTo(isAsk(pxe.StageIPXE, 1)), edit: func(c *Case) {
			c.Events = append(c.Events, inventory.Event{At: c.Packets[len(c.Packets)-1].At, Kind: inventory.EventLoaderSent, Detail: "snponly.efi over tftp"})
		}, want: []string{"loader-silent"}},
		{title: "iPXE has its address and cannot reach the script", capture: "ovmf-pxe-snponly-small-ra", cut: upTo(isTCP), want: []string{"no-script"}},
		{title: "the boot port is dropped", capture: "ovmf-pxe-snponly-small-ra", cut: func(all []trace.Packet) []trace.Packet {
			i := slices.IndexFunc(all, isTCP)
			again := all[i]
			again.At = again.At.Add(time.Second)
			return append(slices.Clone(all[:i+1]), again)
		}, want: []string{"http-blocked"}},
		{title: "HEAD and no GET", capture: "ovmf-http", cut: upTo(isMethod("GET")), want: []string{"head-only"}},
		{title: "HTTP boot without the class", capture: "ovmf-http", cut: func(all []trace.Packet) []trace.Packet {
			all = slices.Clone(upTo(isAsk(pxe.StageFirmware, 3))(all))
			for i, p := range all {
				if isReply(2)(p) {
					m := *p.DHCP
					m.Class, all[i].DHCP = "", &m
				}
			}
			return all
		}, want: []string{"httpclient-missing"}},
		{title: "a whole boot: PXE", capture: "ovmf-pxe-snponly-small-ra", cut: less(notThere)},
		{title: "a whole boot: PXE with ipxe.efi", capture: "ovmf-pxe-ra", cut: less(notThere)},
		{title: "a whole boot: HTTP", capture: "ovmf-http-snponly-small-ra", cut: less(notThere)},
		{title: "a whole boot: HTTP with ipxe.efi", capture: "ovmf-http", cut: less(notThere)},
		{title: "a whole boot: iPXE ROM", capture: "ipxe-rom-ra", cut: less(notThere)},
		{title: "a whole boot: iPXE ROM, small advertisement", capture: "ipxe-rom-small-ra", cut: less(notThere)},
		{title: "a whole boot: 503, then the script", capture: "ipxe-rom-503", cut: less(notThere)},
		{title: "a boot menu, and a script that names next-server", capture: "ipxe-rom-proxy-menu", edit: inProxy, want: []string{"other-next-server"}},
		{title: "what the script names is not there", capture: "ipxe-rom-ra", want: []string{"http-not-found"}},
	} {
		t.Run(x.title, func(t *testing.T) {
			c := Case{
				Packets: captured(t, x.capture), Ours: []netip.Addr{capturedServer}, BootPort: 8000,
				Host: &inventory.Host{Name: "sn42", State: inventory.Available}, Subnet: &inventory.Subnet{Name: "lab", Mode: inventory.ModeFull},
			}
			if x.cut != nil {
				c.Packets = x.cut(c.Packets)
			}
			if len(c.Packets) == 0 {
				t.Fatal("nothing is left of the capture")
			}
			c.Now = c.Packets[len(c.Packets)-1].At.Add(65 * time.Second)
			if x.edit != nil {
				x.edit(&c)
			}
			var got []string
			for _, cause := range Explain(c) {
				got = append(got, cause.Code)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("causes %v, want %v", got, x.want)
				for _, p := range c.Packets {
					t.Log(p.At.Format("05.000"), p)
				}
			}
		})
	}
}

// Whatever is on the wire, there is an answer.
func FuzzExplain(f *testing.F) {
	for _, name := range []string{"ovmf-proxy-4011", "ipxe-rom-503", "ovmf-pxe-no-answer"} {
		b, _ := os.ReadFile(filepath.Join("..", "testdata", "captures", name+".pcap"))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := trace.ParsePCAP(b)
		if err != nil {
			return
		}
		c := Case{Now: start, Ours: []netip.Addr{capturedServer}, BootPort: 80, WantsNetboot: true}
		for _, x := range frames {
			c.Packets = append(c.Packets, trace.Decode(x))
		}
		for i, cause := range Explain(c) {
			if cause.Rank != i+1 || len(cause.Evidence) > evidenceAtMost {
				t.Errorf("%+v", cause)
			}
		}
	})
}
