package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// Health is what the server says about itself.
type Health struct {
	Server    string // address and port of the one that answers, of several
	Version   string
	Note      string        // what an admin may want to know of this version; mostly empty
	RoundTrip time.Duration // of a statement that does nothing
	Ahead     time.Duration // the clock of this machine is ahead of the server's by that, or behind; half a round trip is not certain
	// Settings are those in force for our connections: the server, the database and the user may set them.
	FSync, FullPageWrites bool
	SynchronousCommit     string
	StandbyNames          string // synchronous_standby_names
	Standbys              []Standby
	Slow                  []string // indexes of the schema that are missing, as far as somebody has looked
	// Ways is how often this process has gone to the server and waited for its answers, and Statements what went with it.
	Ways, Statements int64
}

// Standby is a server that copies the changes.
type Standby struct {
	Name    string
	Address string // empty: a socket, or our user may not see it
	State   string // streaming, catchup; empty: our user may not see it, nor what follows
	Sync    string // sync, quorum, potential, async
	// LagBytes is how much its disk lacks, and Lag how long the last change took to get there.
	LagBytes int64
	Lag      time.Duration
}

// The user of Slipway sees the states of standbys only with pg_read_all_stats. Copies for logical replication and backups are no standbys.
const (
	clockSQL    = `SELECT ` + nowMS
	settingsSQL = `SELECT current_setting('server_version'), current_setting('server_version_num')::BIGINT, current_setting('fsync'),
current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names')`
	standbysSQL = `SELECT
COALESCE(r.application_name, ''), COALESCE(host(r.client_addr), ''), COALESCE(r.state, ''), COALESCE(r.sync_state, ''),
COALESCE(pg_wal_lsn_diff(pg_current_wal_lsn(), r.flush_lsn), 0)::BIGINT, COALESCE(EXTRACT(EPOCH FROM r.flush_lag) * 1000000, 0)::BIGINT
FROM pg_stat_replication r
WHERE COALESCE(r.state, '') NOT IN ('backup', 'startup', 'stopping')
AND NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')
ORDER BY 1, 2`
)

// Health asks the server. It waits for a free reader, and for the server. The error is Unavailable when the server does not answer.
func (d *DB) Health(ctx context.Context) (h Health, err error) {
	var c *conn
	select {
	case c = <-d.readers:
	case <-ctx.Done():
		return h, database.GaveUp(ctx.Err())
	case <-d.Closing():
		return h, database.Closed()
	}
	defer func() { d.readers <- c }()
	if !c.isAlive() || d.isOld(c) {
		if c.isOpen() {
			go func(old *conn) { _ = old.close() }(c)
		}
		if c, err = d.dial(); err != nil { // also while an outage is known: somebody has to see its end
			return h, d.noReader.note(d.said(err))
		}
		_ = d.noReader.note(nil)
	}
	if h, err = inquire(c); err != nil {
		_ = c.close()
		c = nil
		return h, d.said(err)
	}
	h.Slow = d.slow
	h.Ways, h.Statements = d.Traffic()
	return h, nil
}

// Look asks the server of a database, which it neither migrates nor writes.
func Look(cfg Config) (h Health, err error) {
	err = visit(cfg, func(s *server, c *conn) error {
		if h, err = inquire(c); err == nil {
			h.Slow, err = s.compare(c)
		}
		return err
	})
	return h, err
}

// Peek runs fn on a snapshot of a database, which it neither migrates nor writes. The error is a Conflict if the database has not the
// schema of this version.
func Peek(cfg Config, fn func(*database.Tx) error) error {
	return visit(cfg, func(s *server, c *conn) error {
		if err := s.isOurs(c); err != nil {
			return err
		}
		if _, err := s.compare(c); err != nil {
			return err
		}
		return database.Read(s.read(c), fn)
	})
}

// visit runs fn with one connection to a server.
func visit(cfg Config, fn func(*server, *conn) error) error {
	cfg.Timeout = 5 * time.Second
	s, err := newServer(cfg)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	c, err := s.dial()
	if err != nil {
		return s.said(err)
	}
	defer func() { _ = c.close() }()
	if err := fn(s, c); err != nil {
		return s.said(err)
	}
	return nil
}

// inquire runs three statements. If the user of the connection may not run one of them, its error says which.
func inquire(c *conn) (h Health, err error) {
	h.Server = c.c.PgConn().Conn().RemoteAddr().String()
	began, ms := time.Now(), int64(0)
	if err := database.Each(c, func(s database.Scan) error { return s(&ms) }, clockSQL, nil); err != nil {
		return h, err
	}
	h.RoundTrip = time.Since(began)
	h.Ahead = began.Add(h.RoundTrip / 2).Sub(time.UnixMilli(ms))
	err = database.Each(c, func(s database.Scan) error {
		var fsync, fullPages string
		var number int64
		err := s(&h.Version, &number, &fsync, &fullPages, &h.SynchronousCommit, &h.StandbyNames)
		h.Note, h.FSync, h.FullPageWrites = isNew(int(number)), fsync == "on", fullPages == "on"
		return err
	}, settingsSQL, nil)
	if err != nil {
		return h, err
	}
	return h, database.Each(c, func(s database.Scan) error {
		var to Standby
		var lag int64
		err := s(&to.Name, &to.Address, &to.State, &to.Sync, &to.LagBytes, &lag)
		to.Lag = time.Duration(lag) * time.Microsecond
		h.Standbys = append(h.Standbys, to)
		return err
	}, standbysSQL, nil)
}

// Risk is why an acknowledged change can be lost. Name is that of the setting.
type Risk struct{ Name, Cause, Hint string }

// Risks says why changes can be lost that were acknowledged; none: they are durable. serverN is how many servers the URL names.
//
// One server without standbys is durable when its disk has each commit. With standbys, a failover makes one of them the primary, so that
// a synchronous one must have each commit. Commits wait for that one even while it is gone: nothing is lost then, and nothing is stored.
func (h *Health) Risks(serverN int) (all []Risk) {
	if !h.FSync {
		all = append(all, Risk{
			"fsync",
			"fsync is off: a crash of the machine of the database damages or loses data",
			"ALTER SYSTEM SET fsync = on, then: SELECT pg_reload_conf()",
		})
	}
	if !h.FullPageWrites {
		all = append(all, Risk{
			"full_page_writes",
			"full_page_writes is off: a crash in the middle of a write damages tables",
			"ALTER SYSTEM SET full_page_writes = on, then: SELECT pg_reload_conf()",
		})
	}
	if h.SynchronousCommit == "off" {
		return append(all, Risk{
			"synchronous_commit",
			"synchronous_commit is off: a crash loses the commits of the last moment, although they were acknowledged",
			"ALTER SYSTEM SET synchronous_commit = on, then: SELECT pg_reload_conf(); also look at ALTER ROLE and ALTER DATABASE",
		})
	}
	if serverN < 2 && len(h.Standbys) == 0 {
		return all
	}
	others := "the address names several servers"
	if len(h.Standbys) > 0 {
		others = "a standby copies the changes (" + strings.Join(h.names(), ", ") + ")"
	}
	switch {
	case h.StandbyNames == "":
		all = append(all, Risk{
			"synchronous_standby_names",
			others + ", and none is synchronous: a failover loses commits that the standby does not have yet",
			"set synchronous_standby_names on the primary, or let Patroni do so: synchronous_mode: true, synchronous_mode_strict: true",
		})
	case h.SynchronousCommit == "local":
		all = append(all, Risk{
			"synchronous_commit",
			others + ", and synchronous_commit is local: commits do not wait for it, and a failover loses those that it does not have yet",
			"ALTER SYSTEM SET synchronous_commit = on, then: SELECT pg_reload_conf()",
		})
	case h.SynchronousCommit == "remote_write":
		all = append(all, Risk{
			"synchronous_commit",
			"synchronous_commit is remote_write: commits do not wait for the disk of the standby; a power cut of both loses the last",
			"ALTER SYSTEM SET synchronous_commit = on, then: SELECT pg_reload_conf()",
		})
	}
	return all
}

// names are those of the standbys, each once.
func (h *Health) names() (all []string) {
	for _, s := range h.Standbys {
		if name := inventory.Clean(s.Name, 60); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// WaitsFor names the standby that each commit waits for although it is not connected. It is empty when there is none, or when our user may
// not see that.
func (h *Health) WaitsFor() string {
	if h.StandbyNames == "" || h.SynchronousCommit == "off" || h.SynchronousCommit == "local" {
		return ""
	}
	for _, s := range h.Standbys {
		if s.State == "" || s.Sync == "sync" || s.Sync == "quorum" {
			return ""
		}
	}
	return fmt.Sprintf("a synchronous standby: synchronous_standby_names is %q, and none of them is connected",
		inventory.Clean(h.StandbyNames, 100))
}
