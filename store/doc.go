// Package store keeps what the gateway has committed, in one SQLite file.
//
// One [Store.Write] is one IMMEDIATE transaction on the only writing
// connection; everything else reads, briefly, on connections of its own that
// cannot write. Inside a transaction [Tx.Load] gives the rows that a group of
// envelopes touches, and [Tx.Apply] writes what was decided about them, each
// with a few statements over many rows. The store decides nothing itself, and
// never calls anybody.
//
// Models, queries, migrations and transactions are bun's. bun writes arguments
// into the text of a statement, so a statement that carries something that a
// stranger chose (bytes, ids, details) runs with bound parameters on bun's
// transaction instead: see statements.go.
//
// Which file holds what:
//
//	store.go, dsn.go, lock.go, migrate.go  opening, the writer, pragmas
//	state.go                               what the committer and the store exchange
//	load.go, accept.go                     the two halves of the acceptance transaction
//	ids.go                                 which ids are known
//	ids_memory.go, ids_merge.go, ids_filter.go
//	                                       the latest ids, their way into the table of
//	                                       all, and what spares looking there
//	messages.go, conversations.go, work.go, peers.go, parked.go, rejections.go,
//	deliveries.go                          the rows of each, as a group writes them
//	recipients.go, queue.go, relocate.go, deadletters.go
//	                                       the outbox and who it is for
//	participations.go, wakes_*.go          hosted agents and their wakes: loading and
//	                                       writing with a group, running, showing
//	history.go, inspect.go, overview.go    what readers are shown
//	retention.go, backup.go                deleting and copying
//
// Numbers: a seq names a message for ever; a position orders the queue of one
// recipient. Both come from the committer's one counter, whose highest value
// is kept ([Store.LastSeq]) whatever retention deletes.
package store
