// Package migrations owns the SQL that builds the database, with one folder per dialect. Files named YYYYMMDDHHMM_what.sql
// apply in order and never change after a release. schema.sql is the golden result of all of them. It never opens a
// database; package sqlstore does.
package migrations

import "embed"

// SQLite holds the migrations for SQLite in its folder "sqlite".
//
//go:embed sqlite/2*.sql
var SQLite embed.FS

// Postgres holds the migrations for PostgreSQL in its folder "postgres".
//
//go:embed postgres/2*.sql
var Postgres embed.FS

// PostgresSchema is what the migrations for PostgreSQL make together.
//
//go:embed postgres/schema.sql
var PostgresSchema string
