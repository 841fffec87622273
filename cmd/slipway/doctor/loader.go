package doctor

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/tftp/fetch"
)

// loaderWithin bounds how long a loader may take from this machine to itself.
const loaderWithin = 15 * time.Second

// LoaderToFetch names the loader that FetchLoader asks for: one that most racks need. It is "" when there is none.
func LoaderToFetch(l *images.Loaders) string {
	for _, name := range l.Names() {
		if row, ok := pxe.LoaderByName(name); ok && row.Package != "" && row.Firmware != "" {
			return name
		}
	}
	return ""
}

// FetchLoader asks the TFTP server on an interface for a loader, with a client that is not ours, and compares it with the
// file. It needs a server that runs.
func FetchLoader(ctx context.Context, iface string, server netip.AddrPort, name string, file []byte) Check {
	ctx, cancel := context.WithTimeout(ctx, loaderWithin)
	defer cancel()
	start := time.Now()
	got, err := fetch.File(ctx, server, netip.Addr{}, name)
	return judgeLoader(iface, name, file, got, time.Since(start), err)
}

// judgeLoader compares what came with the file.
func judgeLoader(iface, name string, file, got []byte, took time.Duration, err error) Check {
	k := Check{Name: "TFTP on " + iface, Status: OK, Detail: fmt.Sprintf("%s comes whole, %d bytes in %s", name, len(got), took.Round(time.Millisecond))}
	switch {
	case err != nil:
		k.Status, k.Detail = Failed, name+" does not come: "+inventory.Clean(err.Error(), 200)
		k.Hint = "look for a firewall that drops UDP port 69, or the answers from other ports: nft list ruleset"
	case !bytes.Equal(got, file):
		k.Status, k.Detail = Warning, fmt.Sprintf("%s comes with %d bytes that are not those of the file, which has %d", name, len(got), len(file))
		k.Hint = "the server reads loaders when it starts: start it again"
	}
	return k
}
