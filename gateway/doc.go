// Package gateway is the middle of the house: it takes envelopes in from
// carriers, gives them one meaning, commits each once and sends it on.
//
// The way of a message:
//
//	carrier → intake      parse, validate, freshness, scope: on the carrier's goroutine
//	        → committer   one goroutine; what waited during the last commit is the next group
//	        → decider     pure: state in, settlements and changes out, in order of arrival
//	        → store       one transaction
//	        → publish     settle to the carriers, wake destinations, tell the watchers
//	        → destination one per recipient that is pushed to: order, window, backoff
//	        → carrier     Send; its acknowledgement is the next group's row
//
// The files: intake.go and scope.go look at one frame alone. committer.go
// gathers groups and keeps trying while the store cannot write;
// transaction.go, load.go and publish.go are one try. decide.go, route.go,
// accept.go, park.go and receipts.go make the decisions and touch nothing but
// memory. dispatch.go and destination.go deliver, trouble.go
// waits where that fails. directory.go knows every
// recipient. attach.go and view.go serve the carriers that host readers.
// participation.go
// resolves what hosted agents may do; admit.go and wake.go decide whom a message
// wakes, runner.go and turn.go give the turns and settle them.
// upkeep.go forgets what is old.
//
// What does not live here: the meaning of a single envelope (core), SQL (store),
// and anything about one transport (carriers).
package gateway
