// Package fetch fetches a file over TFTP with the client of github.com/pin/tftp, which other people wrote and use. Our own
// TFTP engine and the client of simulated machines come from one reading of the RFCs. This client is a second opinion on
// what our TFTP server sends.
package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/pin/tftp/v3"
)

// Most is how many bytes a file may have: several times the size of any boot loader.
const Most = 64 << 20

const (
	answersWithin = time.Second // one block, or the answer to the request
	tries         = 4
	blockSize     = 1408 // fits an Ethernet frame, also through a tunnel
)

var errTooLong = fmt.Errorf("the file has more than %d MiB", Most>>20)

// File returns a file of a server. It asks from the address local, or from one that the kernel chooses when local is the
// zero Addr. It gives up a silent server after a few seconds.
func File(ctx context.Context, server netip.AddrPort, local netip.Addr, name string) ([]byte, error) {
	c, err := tftp.NewClient(server.String())
	if err != nil {
		return nil, err
	}
	c.SetTimeout(answersWithin)
	c.SetRetries(tries)
	c.SetBackoff(func(int) time.Duration { return 0 })
	c.SetBlockSize(blockSize)
	if local.IsValid() {
		if err := c.SetLocalAddr(local.String()); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := c.Receive(name, "octet")
	if err != nil {
		return nil, err
	}
	b := bounded{ctx: ctx, left: Most}
	if _, err := file.WriteTo(&b); err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return b.Bytes(), nil
}

// bounded takes so many bytes, while its context lasts.
type bounded struct {
	bytes.Buffer
	ctx  context.Context
	left int
}

var _ io.Writer = (*bounded)(nil)

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}
