// Package postgres owns the connections to a PostgreSQL server. It decides who writes, finds out whether a commit was made, and connects
// again when the server comes back. It knows SQL statements only as texts, and nothing of hosts: package sqlstore has the statements.
//
// Start reading at frame.go: instances take turns to write, and ask what became of a commit whose answer was lost. Then read how
// statements share a way to the server (conn.go). A transaction keeps answers (answers.go), and a reader may keep more (reading.go).
//
// # What is on disk
//
// Write returns after the server has answered COMMIT, and so after its disk has the transaction (synchronous_commit), and that of a
// synchronous standby. If the answer is lost, Write returns only when the outcome is known, or says that it is not.
//
// # What runs at the same time
//
// One instance writes at a time: an advisory lock is held for the length of a commit. Any number read. A read sees the snapshot of its
// first statement and never waits for a writer.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// DB is one database on a PostgreSQL server. Many goroutines may call its methods.
type DB struct {
	*database.Writer
	*server
	id      string     // of this run, in the table writers
	readers chan *conn // nil stands for one that is not connected
	// Why readers and the writer have no connection.
	noReader, noWriter outage
	writing            *writing
	slow               []string      // indexes that were missing at the start
	heard              chan struct{} // closed when listen has ended
	closed             sync.Once
}

// Open connects to the database, brings its schema up to date, and starts the writer. Close ends it.
//
// The error is an *inventory.Error. It is Invalid for a URL that is none, and Unavailable when the server does not answer or refuses. It
// is Conflict when a newer Slipway wrote the database, or when the server is older than PostgreSQL 14.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	d, err := begin(ctx, cfg)
	// A server that runs goes on by itself. One that does not start ends.
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		e.Hint = strings.TrimSuffix(e.Hint, goesOn)
	}
	return d, err
}

// begin is Open, with the hints of a server that runs.
func begin(ctx context.Context, cfg Config) (*DB, error) {
	cfg.QueueN = cmp.Or(cfg.QueueN, 1024)
	cfg.BatchN = cmp.Or(cfg.BatchN, 256)
	cfg.ReaderN = cmp.Or(cfg.ReaderN, max(4, runtime.NumCPU()))
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	cfg.Patience = cmp.Or(cfg.Patience, 30*time.Second)
	to, err := newServer(cfg)
	if err != nil {
		return nil, err
	}
	d := &DB{server: to, id: rand.Text(), readers: make(chan *conn, cfg.ReaderN), heard: make(chan struct{})}
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := d.migrate(ctx); err != nil {
		return nil, err
	}
	if err := d.compareOnce(); err != nil {
		return nil, err
	}
	for range cfg.ReaderN {
		d.readers <- nil
	}
	d.writing = &writing{server: to, id: d.id, outage: &d.noWriter, isEnding: func() <-chan struct{} { return d.Closing() }}
	if err := d.writing.connect(); err != nil { // before the first write, so that a start that cannot write fails
		return nil, err
	}
	d.Writer = database.NewWriter(d.writing, database.WriterConfig{Log: d.cfg.Log, QueueN: cfg.QueueN, BatchN: cfg.BatchN})
	go d.listen()
	if len(d.each()) > 1 {
		go d.surveys(d.Closing())
	}
	return d, nil
}

// compareOnce looks at the start whether somebody has changed the schema by hand.
func (d *DB) compareOnce() error {
	c, err := d.dial()
	if err != nil {
		return d.said(err)
	}
	defer func() { _ = c.close() }()
	if d.slow, err = d.compare(c); err != nil {
		return d.said(err)
	}
	for _, index := range d.slow {
		d.cfg.Log.Warn("the database lacks an index: some answers take long", "missing", index, "hint", MissingHint)
	}
	return nil
}

// Close finishes the writes that wait, ends the writer and the connections. Later writes are Unavailable. It is for the end of the program:
// every Read must have returned.
func (d *DB) Close() (err error) {
	d.closed.Do(func() {
		d.Writer.Close()
		<-d.heard
		for range cap(d.readers) {
			if c := <-d.readers; c != nil {
				_ = c.close()
			}
		}
		err = d.writing.leave()
	})
	return err
}

// Read runs fn on a snapshot of the database. It waits for a free reader and for the server. The error is Unavailable when ctx ends
// before a reader is free, or the server cannot be reached, and else that of fn.
func (d *DB) Read(ctx context.Context, fn func(*database.Tx) error) (err error) {
	var c *conn
	select {
	case c = <-d.readers:
	case <-ctx.Done():
		return d.noReader.instead(database.GaveUp(ctx.Err()))
	case <-d.Closing():
		return database.Closed()
	}
	isKept := false
	defer func() {
		if !isKept {
			d.readers <- c
		}
	}()
	if err := ctx.Err(); err != nil {
		return database.GaveUp(err)
	}
	if !c.isAlive() || c.dialled != d.dialled.Load() || d.isOld(c) {
		if c.isOpen() {
			go func(old *conn) { _ = old.close() }(c) // a server that has gone does not answer to it
		}
		if c, err = d.connected(); err != nil {
			return err
		}
	}
	defer func() {
		hasAsked := len(c.waiting) == 0 || c.waiting[0].query != beginRead
		c.waiting = nil
		if !hasAsked {
			return
		}
		// The caller need not wait for the end of its snapshot.
		isKept = true
		go func() {
			if _, err := c.Exec(endRead, nil); err != nil {
				_ = c.close()
				c = nil
			}
			d.readers <- c
		}()
	}()
	return database.Read(d.read(c), fn)
}

// Write is that of database.Writer. While the server cannot be reached, it returns that error at once, and stores nothing.
func (d *DB) Write(ctx context.Context, fn func(*database.Tx) error) error {
	return d.WriteExpecting(ctx, nil, fn)
}

// WriteExpecting is that of database.Writer; see Write.
func (d *DB) WriteExpecting(ctx context.Context, expect func(*database.Tx), fn func(*database.Tx) error) error {
	if err := d.noWriter.lately(); err != nil {
		return err
	}
	return d.noWriter.instead(d.Writer.WriteExpecting(ctx, expect, fn))
}

// connected makes a connection for a reader, unless one could not be made just now.
func (d *DB) connected() (*conn, error) {
	if err := d.noReader.lately(); err != nil {
		return nil, err
	}
	c, err := d.dial()
	if err != nil {
		return nil, d.noReader.note(d.said(err))
	}
	return c, d.noReader.note(nil)
}

// listen wakes those of OnCommit when another instance has added events. Nothing relies on it: others look again from time to time.
func (d *DB) listen() {
	defer close(d.heard)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-d.Closing():
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		if c, err := d.dial(); err == nil {
			if _, err = c.c.Exec(ctx, `LISTEN slipway`); err == nil {
				d.Committed() // what came while nobody listened
			}
			for err == nil && c.dialled == d.dialled.Load() {
				err = d.hear(ctx, c)
			}
			_ = c.close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// hear waits for another instance. When that was quiet for a while, it asks the server for an answer: a connection may die without a word.
func (d *DB) hear(ctx context.Context, c *conn) error {
	quiet, cancel := context.WithTimeout(ctx, 3*d.cfg.Timeout)
	defer cancel()
	n, err := c.c.WaitForNotification(quiet)
	switch {
	case err == nil && n.Payload != d.id:
		d.Committed()
	case err != nil && ctx.Err() == nil && quiet.Err() != nil:
		_, err = c.Exec(`SELECT 1`, nil)
	}
	return err
}

// Size returns how many bytes the database has on the disk of the server.
func (d *DB) Size(ctx context.Context) (n int64, err error) {
	err = d.Read(ctx, func(t *database.Tx) error {
		_, err := t.Row([]any{&n}, `SELECT pg_database_size(current_database())`)
		return err
	})
	return n, err
}
