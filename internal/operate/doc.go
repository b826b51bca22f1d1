// Package operate shows a running job's vitals to those who operate it:
// Prometheus metrics, health checks for a supervisor and profiles of the
// process, over HTTP. It reads a [vitals.Board] and nothing else of the job.
package operate
