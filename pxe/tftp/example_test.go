package tftp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/tftp"
	"slipway.dev/slipway/pxe/tftp/fetch"
)

// loaders serves one boot loader from memory.
type loaders map[string]string

func (l loaders) Find(name string) (images.Loader, bool) {
	data, ok := l[name]
	return images.Loader{Name: name, Data: []byte(data)}, ok
}

// boots hears of the transfers.
type boots struct{ done chan pxe.Transfer }

func (boots) Ask(context.Context, inventory.SessionID, netip.Addr, string) ([]byte, error) {
	return nil, inventory.Errorf(inventory.NotFound, "there is no script")
}
func (boots) Transferring(pxe.Transfer)    {}
func (b boots) Transferred(t pxe.Transfer) { b.done <- t }

// A server sends a loader, and an independent client fetches it.
func Example() {
	hears := boots{done: make(chan pxe.Transfer, 1)}
	server := tftp.New(tftp.Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Loaders: loaders{"snponly.efi": "MZ, and more"}, Boots: hears,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err := server.Listen(); err != nil { // so that no request comes too early
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()

	data, err := fetch.File(ctx, server.Addrs()[0], netip.Addr{}, "snponly.efi")
	fmt.Printf("%q %v\n", data, err)
	fmt.Println("the server sent", (<-hears.done).Name)
	_, err = fetch.File(ctx, server.Addrs()[0], netip.Addr{}, "nothing.efi")
	fmt.Println("a file that is not there is an error:", err != nil)

	stop()
	fmt.Println("it ended with", <-ended)
	// Output:
	// "MZ, and more" <nil>
	// the server sent snponly.efi
	// a file that is not there is an error: true
	// it ended with <nil>
}
