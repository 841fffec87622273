package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"slipway.dev/slipway/lab/database"
	"slipway.dev/slipway/web/wire"
)

// awayFor is how long a server of several stays away after it has ended. That is longer than the others need to take what it did.
const awayFor = 20 * time.Second

// instanceNames are the names of the servers that share a database.
var instanceNames = [MostInstances]string{"one", "two", "three"}

// servers are what boots a rack: one server with a file of SQLite, or several instances with one PostgreSQL database.
type servers struct {
	all      []*server
	database *database.Database // nil: SQLite
}

// startServers starts the servers of a rack. Of several, the first one makes the key of secrets, and the others get copies of it.
func startServers(ctx context.Context, r *Rack, executable string) (s servers, err error) {
	if r.cfg.Instances == 1 {
		alone := newServer(r, 0, "", executable)
		s.all = append(s.all, alone)
		return s, alone.start(ctx)
	}
	if s.database, err = database.Start(ctx, r.Dir()); err != nil {
		return s, err
	}
	for i := range r.cfg.Instances {
		one := newServer(r, i, instanceNames[i], executable)
		one.args = append(append(one.args, "--instance", one.name), s.database.Flags()...)
		if i > 0 {
			if err := shareKey(s.all[0].dataDir, one.dataDir); err != nil {
				return s, err
			}
		}
		s.all = append(s.all, one)
		if err := one.start(ctx); err != nil {
			return s, err
		}
		one.keepRunning(awayFor)
	}
	return s, nil
}

// shareKey gives a new data directory the key of secrets of another one. All instances of a database have the same.
func shareKey(from, to string) error {
	key, err := os.ReadFile(filepath.Join(from, "secret.key"))
	if err != nil {
		return fmt.Errorf("read the key of secrets: %w", err)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(to, "secret.key"), key, 0o600); err != nil {
		return fmt.Errorf("copy the key of secrets: %w", err)
	}
	return nil
}

// asked returns the server that the lab itself asks. Of several it is the last one: the first leads, and a check kills it.
func (s servers) asked() *server { return s.all[len(s.all)-1] }

// stop ends all servers, and then their database. A second call does nothing.
func (s servers) stop() {
	var ending sync.WaitGroup
	for _, one := range s.all {
		ending.Go(one.stop)
	}
	ending.Wait()
	if s.database != nil {
		s.database.Stop()
	}
}

// areAlive reports whether that many instances are alive, and one of them leads.
func areAlive(n int) func([]wire.Instance) bool {
	return func(all []wire.Instance) bool {
		aliveN := 0
		for _, i := range all {
			if i.Life == "alive" {
				aliveN++
			}
		}
		return aliveN == n && leader(all) != nil
	}
}

// leader returns the instance that leads, nil for none.
func leader(all []wire.Instance) *wire.Instance {
	for i := range all {
		if all[i].IsLeader && all[i].Life == "alive" {
			return &all[i]
		}
	}
	return nil
}
