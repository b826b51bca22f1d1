// Package memory holds a job against the memory that its process may have: what
// the limit is and who set it ([Find]), the garbage collector's targets below it
// ([Tune]), whether a state can fit before it is loaded ([Admit]), and how near
// the limit is while the job loads and runs ([Guard]).
package memory
