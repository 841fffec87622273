package postgres

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"slipway.dev/slipway/inventory"
)

const (
	surveyEvery = 30 * time.Second
	surveyFor   = 2 * time.Second
)

// seen is a primary that a survey has found.
type seen struct {
	at string
	is Place
}

// survey asks all servers of the URL which of them are primaries. Without it, nobody would see a second one: the first that takes writes is
// used. It is a Conflict if they are of different clusters.
func (s *server) survey(ctx context.Context) error {
	all := s.each()
	if len(all) < 2 {
		return nil
	}
	found := make([]seen, len(all))
	var asking sync.WaitGroup
	for n, to := range all {
		asking.Go(func() { found[n] = askPlace(ctx, to) })
	}
	asking.Wait()
	before, first := s.placeNow(), seen{}
	for _, f := range found {
		if f.is.isNone() { // a standby, or one that does not answer
			continue
		}
		if first.is.isNone() {
			first = f
		}
		if before.isNone() && f.is.System != first.is.System {
			return inventory.Errorf(inventory.Conflict, "the address names two databases: %s has the system identifier %s, and %s has %s",
				first.at, first.is.System, f.at, f.is.System).WithHint("name only servers of one cluster")
		}
		_ = s.accept(f.at, f.is) // nobody is connected to one that it refuses
	}
	if after := s.placeNow(); !before.isNone() && after != before {
		s.cfg.Log.Error("an old primary was in use: another server has become the primary",
			"timeline", after.Timeline, "old", before.Timeline)
		s.dialled.Add(1) // all connections are made again
	}
	return nil
}

// surveys looks for another primary from time to time, until the program ends.
func (s *server) surveys(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(surveyEvery):
			_ = s.survey(context.Background()) // which servers there are was checked at the start
		}
	}
}

// each returns the settings of a connection for each server of the URL.
func (s *server) each() (all []*pgconn.Config) {
	by := map[string]*pgconn.Config{}
	own := pgconn.FallbackConfig{Host: s.to.Host, Port: s.to.Port, TLSConfig: s.to.TLSConfig}
	for _, f := range append([]*pgconn.FallbackConfig{&own}, s.to.Fallbacks...) {
		at := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if is := by[at]; is != nil { // the same without TLS
			is.Fallbacks = append(is.Fallbacks, f)
			continue
		}
		is := s.to.Config.Copy()
		is.Host, is.Port, is.TLSConfig, is.Fallbacks = f.Host, f.Port, f.TLSConfig, nil
		is.ValidateConnect, is.AfterConnect, is.ConnectTimeout = nil, nil, surveyFor
		by[at], all = is, append(all, is)
	}
	return all
}

// askPlace asks one server for its place.
func askPlace(ctx context.Context, to *pgconn.Config) (s seen) {
	ctx, cancel := context.WithTimeout(ctx, surveyFor)
	defer cancel()
	c, err := pgconn.ConnectConfig(ctx, to)
	if err != nil {
		return s
	}
	defer func() { _ = c.Close(ctx) }()
	got := c.ExecParams(ctx, `SELECT current_setting('transaction_read_only'), `+placeSQL, nil, nil, nil, nil).Read()
	if got.Err != nil || len(got.Rows) != 1 || string(got.Rows[0][0]) == "on" {
		return s
	}
	return seen{c.Conn().RemoteAddr().String(), readPlace(got.Rows[0][1], got.Rows[0][2])}
}
