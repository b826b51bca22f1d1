// Package plan holds a build of a job against what is stored, before anything is
// changed: what becomes of each source, operator, key, state and sink, why, and
// what to do. [Compare] is pure: whoever calls it reads the manifest, the version
// descriptions and the ways of the states.
package plan
