// Package upgrades tests that versions of a job take over from each other, while input
// comes without a stop and their processes are killed, stopped, woken and started again:
// what stands there in the end counts each input once, under the version that was live.
package upgrades
