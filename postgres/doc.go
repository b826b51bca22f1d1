// Package postgres writes to PostgreSQL.
package postgres
