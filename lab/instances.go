package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/lab/database"
	"slipway.dev/slipway/web/client"
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

// await waits until the API says of the instances what is wanted, and returns them.
func (l *Lab) await(ctx context.Context, limit time.Duration, what string, isSo func([]wire.Instance) bool) ([]wire.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		all, err := l.instances(ctx)
		if err == nil && isSo(all) {
			return all, nil
		}
		if sleep.For(ctx, 200*time.Millisecond) != nil {
			return all, inventory.Errorf(inventory.Unavailable, "not within %s: %s: %w", limit, what, errors.Join(err, ctx.Err()))
		}
	}
}

func (l *Lab) instances(ctx context.Context) (all []wire.Instance, err error) {
	for i, err := range l.API.Instances.All(ctx, client.Query{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
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

// list returns what "slipway instance list" prints.
func (l *Lab) list(ctx context.Context, executable string) string {
	cmd := exec.CommandContext(ctx, executable, "instance", "list", "--server", l.servers.asked().socket())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%s", out, err)
	}
	return string(out)
}

// outage is the death of the server that leads, while a machine boots.
type outage struct {
	lab    *Lab
	killed *server // nil before
	at     time.Time
}

// strike kills the server that leads.
func (o *outage) strike(ctx context.Context) error {
	all, err := o.lab.instances(ctx)
	if err != nil {
		return fmt.Errorf("find the server that leads: %w", err)
	}
	leads := leader(all)
	if leads == nil {
		return errors.New("no server leads")
	}
	for _, s := range o.lab.servers.all {
		if s.name == leads.Name {
			o.killed, o.at = s, time.Now()
			return s.kill()
		}
	}
	return fmt.Errorf("the server that leads, %s, is none of the lab", leads.Name)
}

// check says whether another server has taken what the killed one did, and waits until that is back.
func (o *outage) check(ctx context.Context) error {
	if o.killed == nil {
		return errors.New("no machine booted while its server was killed")
	}
	n := len(o.lab.servers.all)
	all, err := o.lab.await(ctx, 2*awayFor, "the killed server is back", areAlive(n))
	if err != nil {
		return err
	}
	if leads := leader(all); leads.Name == o.killed.name {
		return fmt.Errorf("server %s was killed, and leads again: no other one has taken over", o.killed.name)
	}
	return nil
}
