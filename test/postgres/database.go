package postgres

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Database makes an empty database, and returns its address. Nobody drops it: PostgreSQL would write all that it has to the disk first, and
// the folder of the server goes anyway.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.create(t, "template0")
}

// Filled makes a database with what fill leaves in an empty one, such as a schema. For each name fill runs once: others get a copy, which
// takes less time than to migrate. fill closes its connections, because PostgreSQL copies no database that is in use.
func (s *Server) Filled(t testing.TB, name string, fill func(url string) error) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	template := "filled_" + name
	if !s.filled[name] {
		s.exec(t, "CREATE DATABASE "+template+" TEMPLATE template0")
		if err := fill(s.URL(template)); err != nil {
			s.exec(t, "DROP DATABASE "+template+" WITH (FORCE)")
			t.Fatalf("fill database %s: %v", name, err)
		}
		s.filled[name] = true
	}
	return s.create(t, template)
}

func (s *Server) create(t testing.TB, template string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()) // a server that was a standby has databases that it has not made
	s.exec(t, "CREATE DATABASE "+name+" TEMPLATE "+template)
	return s.URL(name)
}

func (s *Server) exec(t testing.TB, sql string) {
	t.Helper()
	if err := s.try(sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Set changes a setting of the running server, as an admin does. It returns when new statements see it.
func (s *Server) Set(t testing.TB, name, value string) {
	t.Helper()
	s.exec(t, "ALTER SYSTEM SET "+name+" = '"+strings.ReplaceAll(value, "'", "''")+"'")
	s.exec(t, "SELECT pg_reload_conf()")
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := s.try("DO $$ BEGIN ASSERT current_setting('" + name + "') = '" + strings.ReplaceAll(value, "'", "''") + "'; END $$")
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

func (s *Server) try(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, s.SocketURL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}
