package simulate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"

	"slipway.dev/slipway/pxe/tftp/fetch"
)

// compareLoader fetches a loader once more, with a TFTP client that is not ours: it has to get the same bytes. One machine
// does so for each loader.
func (m *machine) compareLoader(ctx context.Context, server netip.AddrPort, file string) error {
	if !m.group.cfg.SecondClient || !m.group.stats.beginSecond(file) {
		return nil
	}
	var got []byte
	err := m.group.net.inside(func() (err error) {
		got, err = fetch.File(ctx, server, m.address, file)
		return err
	})
	if err != nil {
		err = fmt.Errorf("a TFTP client of others does not get %s: %w", file, err)
	} else {
		err = m.group.stats.sameFile(strings.ToLower(lastName(file)), sha256.Sum256(got))
	}
	m.group.stats.endSecond(file, err)
	return err
}

// beginSecond reports whether a loader is still to be fetched by the second client. It is false while a machine does that.
func (s *stats) beginSecond(file string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second[file] {
		return false
	}
	s.second[file] = true
	return true
}

// endSecond counts a comparison that went well. After a failure the next machine tries again, so that no machine
// arrives while the bytes differ.
func (s *stats) endSecond(file string, err error) {
	if err == nil {
		s.count("loaders compared with another TFTP client")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.second, file)
}
