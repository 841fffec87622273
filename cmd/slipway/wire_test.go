package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// rigAddress is the one of the server in the captures.
var rigAddress = netip.MustParseAddr("10.98.0.1")

// captures is where those of real firmware are; scripts run in folders of their own.
var captures = func() string {
	dir, _ := filepath.Abs(filepath.Join("..", "..", "pxe", "testdata", "captures"))
	return dir
}()

// cmdOnWire lets a machine have said, until two minutes ago, what is in a capture of real firmware: onwire CAPTURE MAC.
func cmdOnWire(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(filepath.Join(captures, args[0]+".pcap"))
	ts.Check(err)
	frames, err := trace.ParsePCAP(b)
	ts.Check(err)
	own, err := hex.DecodeString(strings.ReplaceAll(args[1], ":", ""))
	ts.Check(err)
	late := time.Since(frames[len(frames)-1].At) - 2*time.Minute
	for _, f := range frames {
		f.At, f.Bytes = f.At.Add(late), bytes.ReplaceAll(f.Bytes, []byte{0x52, 0x54, 0, 0xaa, 0, 1}, own)
		ts.Value(rigKey{}).(*rig).wire.Add(f)
	}
}

// probe is asked about a subnet beside which another server leads UEFI machines elsewhere, and reaches no relay.
func (r *rig) probe(_ context.Context, n inventory.Subnet, server netip.Addr) ([]pxe.ProbeLine, error) {
	if server.IsValid() && server != netip.MustParseAddr("10.0.0.53") {
		return nil, inventory.Errorf(inventory.Unavailable, "%s does not answer", server).WithHint("is it the address of a DHCP server?")
	}
	offer := pxe.ProbeOffer{Server: netip.MustParseAddr("10.0.0.53"), File: "other.efi"}
	return []pxe.ProbeLine{
		{Kind: "BIOS", LeadsTo: pxe.LeadsToUs, Detail: "10.0.0.53 sends it here"},
		{Kind: "UEFI", LeadsTo: pxe.LeadsAway, Detail: "10.0.0.53 names other.efi", Hint: "give it the snippet of " + n.Name, Offers: []pxe.ProbeOffer{offer}},
	}, nil
}
