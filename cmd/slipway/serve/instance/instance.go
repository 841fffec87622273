// Package instance makes a server one of the instances of its database: which one it is, and which duties it would do. Package duty decides
// which it has.
package instance

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// File has the id of the instance, in the data directory.
const File = "instance.id"

// Config says which instance this is.
type Config struct {
	Store     inventory.Store
	DataDir   string
	Name      string       // "" is the host name
	Addresses []netip.Addr // where machines reach it
	Links     []string     // where other instances reach it, each with a port
	Version   string       // of the program
	Undrain   bool         // hold duties again, although an admin has drained it
	IsAlone   bool         // no other process uses the database: it is a file of SQLite in the locked data directory
	Out       io.Writer    // gets a line about the leader while this instance waits for the engine
	Log       *slog.Logger
}

// newKeeper makes the keeper of the instance's duties. It reads the id from the data directory, which the first start makes.
func newKeeper(cfg Config) (k *duty.Keeper, is inventory.Instance, err error) {
	id, err := readID(cfg.DataDir)
	if err != nil {
		return nil, is, err
	}
	name := cfg.Name
	if name == "" {
		host, _ := os.Hostname()
		host, _, _ = strings.Cut(host, ".")
		name = strings.Trim(cut(inventory.NameFrom(host, "slipway")), "-")
	}
	if err := inventory.CheckName("instance", name); err != nil {
		return nil, is, err
	}
	addresses := make([]string, 0, len(cfg.Addresses))
	for _, a := range cfg.Addresses {
		addresses = append(addresses, a.String())
	}
	is = inventory.Instance{ID: id, Name: name, Addresses: addresses, Links: cfg.Links, Version: cfg.Version}
	return duty.New(duty.Config{Store: cfg.Store, IsAlone: cfg.IsAlone, Log: cfg.Log, Instance: is}), is, nil
}

// cut shortens a text to the length of a name.
func cut(s string) string { return s[:min(len(s), 63)] }

// readID reads the id in a data directory, and makes one if there is none.
func readID(dir string) (string, error) {
	path := filepath.Join(dir, File)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		id := strings.ToLower(rand.Text())
		// A crash may leave an empty file, which the case below refuses. So it gets its name last.
		next := path + ".new"
		err := os.WriteFile(next, []byte(id+"\n"), 0o600)
		if err == nil {
			err = os.Rename(next, path)
		}
		if err != nil {
			return "", fmt.Errorf("make the id of this instance: %w", err)
		}
		return id, nil
	case err != nil:
		return "", fmt.Errorf("read the id of this instance: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if inventory.CheckName("instance", id) != nil {
		return "", inventory.Errorf(inventory.Invalid, "the file %s does not hold the id of an instance", path).
			WithHint("delete it: the next start makes another")
	}
	return id, nil
}
