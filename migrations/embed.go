// Package migrations owns the SQL that builds the database: one folder per dialect, in which files named
// YYYYMMDDHHMM_what.sql are applied in order and are never changed once released, and schema.sql, the golden result
// of applying all of them. It never opens a database; package sqlstore does.
package migrations

import "embed"

// SQLite holds the migrations for SQLite in its folder "sqlite".
//
//go:embed sqlite/2*.sql
var SQLite embed.FS
