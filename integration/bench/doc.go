// Command bench runs the gateway and its peers on the same messages, the same
// disk and in the same run, in turn, for several rounds, and prints medians and
// ratios. make bench calls it; docs/bench.md tells what was measured.
//
// It has a module of its own, so that what the peers depend on stays out of the
// gateway's.
//
//	main.go, targets.go   what is run, and the table of targets
//	accept*.go            durable acceptance: a bare insert, JetStream, HTTP
//	relay*.go             NATS in, one commit, MQTT out: the contestants
//	growth*.go            the rate over a filled database, its size, its opening
//	fanout.go, memory.go  readers of a stream; resident memory
//	gobench.go            the Go benchmarks of the gateway's packages
//	results.go, plot.go   medians, tables, files
//	process.go, site.go   processes and brokers
//
// Every contestant but the bare insert is a process of its own, driven from
// outside over loopback. Two of them are this program itself, started with
// -contestant.
package main
