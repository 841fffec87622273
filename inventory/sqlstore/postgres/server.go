package postgres

import (
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"slipway.dev/slipway/inventory/sqlstore/database"
)

// Config holds the settings of a DB. Only URL is required.
type Config struct {
	// URL names the server, the user and the database, as libpq does: postgres://user@host:5432/slipway?sslmode=verify-full. It may
	// name several servers; the one that can be written is used. Password is apart, so that no list of processes shows it.
	URL, Password string
	// Migrations are the files that bring the schema up to date, as goose names them; nil leaves the schema as it is.
	Migrations fs.FS
	// Schema is what they make together, to find out what somebody has taken away by hand; "" compares nothing.
	Schema string
	// Watched are the tables whose changes database.Tx.Changes counts.
	Watched []string
	// Lost is called when commits that were acknowledged are gone, as after a failover to a standby that did not have them. Nil only logs.
	Lost func(commitN int64)
	// Place is where the database was at the last start. A server with an older timeline is refused. Placed is called when that changes.
	Place  Place
	Placed func(Place)
	Log    *slog.Logger // gets migrations, failed commits and lost connections; nil discards them
	// QueueN, BatchN and ReaderN are those of package sqlite.
	QueueN, BatchN, ReaderN int
	// Timeout is how long one answer of the server may take; 0 is 10 seconds. Patience is how long Write waits to learn what became of a
	// commit; 0 is 30 seconds.
	Timeout, Patience time.Duration
}

// server is where the database is, and how it is used.
type server struct {
	cfg         Config
	to          *pgx.ConnConfig
	first       *pgx.ConnConfig   // to, without settings that old servers do not know, so that they say how old they are
	session     map[string]string // settings of each other connection
	parents     map[string]bool   // tables whose rows take rows of others along; nil is not known
	placing     sync.Mutex
	place       Place       // of the newest primary that was seen; none before the first
	isPlaceless atomic.Bool // the server does not tell its place

	dialled atomic.Int64 // counts the connections of the writer: the others follow it to another server
	traffic traffic
}

// traffic counts what all connections have sent since the start.
type traffic struct{ ways, statements atomic.Int64 }

func (t *traffic) count(statementN int) {
	t.ways.Add(1)
	t.statements.Add(int64(statementN))
}

// Traffic returns how often somebody has gone to the server and waited for its answers since the start, and with how many statements.
func (s *server) Traffic() (ways, statements int64) {
	return s.traffic.ways.Load(), s.traffic.statements.Load()
}

// mayCascade reports whether rows of other tables may go with one of a table. Without a schema, nobody knows.
func (s *server) mayCascade(table string) bool { return s.parents == nil || s.parents[table] }

func (s *server) isWatched(query string) bool { return database.Changes(query, s.cfg.Watched) }

// lost says that commits are gone that were acknowledges.
func (s *server) lost(n int64) {
	s.cfg.Log.Error("the database has lost acknowledged changes", "commits", n,
		"hint", "after a failover: the standby did not have them; set synchronous_standby_names on the primary")
	if s.cfg.Lost != nil {
		s.cfg.Lost(n)
	}
}
