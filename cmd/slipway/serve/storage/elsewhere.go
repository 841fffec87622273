package storage

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

// fileOptions are the options of a URL that name files, and how such a file is called on a machine that Slipway writes it to.
var fileOptions = []struct{ option, name string }{
	{"sslrootcert", "database-ca.crt"}, {"sslcert", "database.crt"}, {"sslkey", "database.key"},
}

// hidden are the environment variables that PostgreSQL's own programs and the driver read, and that would be missing on another machine.
var hidden = []string{
	"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLCERTMODE", "PGSSLKEY", "PGSSLPASSWORD",
	"PGSSLSNI",
	"PGSSLNEGOTIATION", "PGTARGETSESSIONATTRS", "PGSERVICE", "PGSERVICEFILE", "PGOPTIONS", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
}

// Elsewhere returns the address and the password with which another machine reaches the same database. The address names the same files as
// here (FilesOf). The error says what an admin has to change before another machine can.
func (s Settings) Elsewhere() (address, password string, err error) {
	a, err := postgres.ReadAddress(s.URL)
	if err != nil {
		return "", "", err
	}
	if len(a.Local) > 0 {
		return "", "", inventory.Errorf(inventory.Conflict,
			"the address of the database names %s, which no other machine reaches", inventory.Clean(a.Local[0], 100)).
			WithHint("let PostgreSQL listen on an address of the network (listen_addresses, pg_hba.conf), write that into database:, " +
				"and start this server again")
	}
	way, options := cutOptions(s.URL)
	for _, o := range options {
		if slices.Contains([]string{"service", "servicefile", "sslpassword"}, o.key) {
			return "", "", inventory.Errorf(inventory.Conflict,
				"the address of the database has the option %s, which Slipway cannot hand to another machine", o.key).
				WithHint("write host, user, database and files into database: instead, and start this server again")
		}
	}
	for _, name := range hidden {
		if os.Getenv(name) != "" {
			return "", "", inventory.Errorf(inventory.Conflict,
				"the server reads the environment variable %s, which another machine does not have", name).
				WithHint("write what it says into database:, and start this server again without the variable")
		}
	}
	if password, err = s.password(); err != nil {
		return "", "", err
	}
	if password == "" {
		if password, err = postgres.Password(s.URL); err != nil {
			return "", "", err
		}
	}
	options = slices.DeleteFunc(options, func(o option) bool { return o.key == "password" || o.key == "passfile" })
	if begin, rest, ok := strings.Cut(way, "://"); ok { // ReadAddress has seen it
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			user, _, _ := strings.Cut(rest[:at], ":")
			way = begin + "://" + user + rest[at:]
		}
	}
	return joinOptions(way, options), password, nil
}

// MayUse refuses a data directory that has another inventory.
func (s Settings) MayUse(ctx context.Context) error {
	file := filepath.Join(s.DataDir, sqliteFile)
	hostN, err := countHosts(ctx, file)
	if err != nil {
		return err
	}
	if hostN > 0 {
		return inventory.Errorf(inventory.Conflict, "%s has an inventory with %d hosts", file, hostN).
			WithHint("choose another --data-dir; or, to leave that inventory behind: mv %s %s.old", file, file)
	}
	used, err := s.Used()
	if err != nil {
		return err
	}
	a, err := postgres.ReadAddress(s.URL)
	if err == nil && used != "" && used != a.URL {
		err = inventory.Errorf(inventory.Conflict,
			"the data directory %s was used with another database, %s", s.DataDir, inventory.Clean(used, 200)).
			WithHint("choose another --data-dir; or, if that was the same database under another address: rm %s", filepath.Join(s.DataDir,
				usedFile))
	}
	return err
}

// FilesOf returns the paths of the files that the address of a database names. The keys are the names of these files on a machine that
// Slipway writes them to.
func FilesOf(address string) map[string]string {
	all := map[string]string{}
	_, options := cutOptions(address)
	for _, f := range fileOptions {
		for _, o := range options {
			if o.key == f.option && o.value != "" && o.value != "system" { // sslrootcert=system: the authorities of the machine
				all[f.name] = o.value
			}
		}
	}
	return all
}

// WithFiles returns an address that names other paths. Paths are by the names that FilesOf returns.
func WithFiles(address string, paths map[string]string) string {
	way, options := cutOptions(address)
	for _, f := range fileOptions {
		for n := range options {
			if path := paths[f.name]; options[n].key == f.option && path != "" {
				options[n].value = path
			}
		}
	}
	return joinOptions(way, options)
}

// option is one behind the question mark of a URL.
type option struct{ key, value string }

// cutOptions takes a URL apart. url.Parse would refuse several hosts with ports, and url.Values would change the order.
func cutOptions(address string) (way string, all []option) {
	way, rest, has := strings.Cut(address, "?")
	if !has {
		return way, nil
	}
	for part := range strings.SplitSeq(rest, "&") {
		key, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		if key != "" {
			all = append(all, option{key, value})
		}
	}
	return way, all
}

func joinOptions(way string, all []option) string {
	for n, o := range all {
		mark := "&"
		if n == 0 {
			mark = "?"
		}
		way += mark + o.key + "=" + strings.ReplaceAll(url.QueryEscape(o.value), "%2F", "/")
	}
	return way
}
