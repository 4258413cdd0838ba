package main

import (
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

const (
	plotWidth  = 22 * vg.Centimeter
	plotHeight = 13 * vg.Centimeter
)

// chart is one picture; a question that was not measured has none.
type chart struct {
	file, title, x, y string
	// series are the questions that it shows.
	series []string
	// logarithmic says so of each axis.
	logX, logY bool
}

func charts() []chart {
	return []chart{
		{"acceptance.svg", "Durable acceptance, 600-byte messages", "messages in flight", "messages/s", []string{accept}, true, true},
		{"relay.svg", "NATS to MQTT QoS 1, one durable commit between", "messages in flight", "messages/s", []string{relay}, true, true},
		{"latency.svg", "NATS to MQTT, latency by load", "% of the contestant's own highest rate", "ms", []string{latencyP50, latencyP99}, false, true},
		{"growth.svg", "Acceptance in process by stored messages", "stored messages", "messages/s", []string{growthRate}, false, false},
	}
}

func (r *results) draw(dir string) error {
	for _, c := range charts() {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
		p.Legend.Top, p.Legend.Left = true, true
		p.Add(plotter.NewGrid())
		if c.logX {
			p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
		if c.logY {
			p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
		drawn, err := c.addLines(p, r)
		if err != nil {
			return err
		}
		if !drawn {
			continue
		}
		if !c.logY {
			p.Y.Min = 0
		}
		if err := p.Save(plotWidth, plotHeight, filepath.Join(dir, c.file)); err != nil {
			return err
		}
	}
	return nil
}

func (c chart) addLines(p *plot.Plot, r *results) (drawn bool, err error) {
	for i, what := range c.series {
		list, contestants := r.of(what)
		for j, name := range contestants {
			var points plotter.XYs
			for _, s := range list {
				if s.Contestant == name && (s.Median > 0 || !c.logY) {
					points = append(points, plotter.XY{X: s.X, Y: s.Median})
				}
			}
			if len(points) == 0 {
				continue
			}
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return false, err
			}
			line.Color, line.Dashes = plotutil.Color(j), plotutil.Dashes(i)
			dots.Color, dots.Shape = plotutil.Color(j), plotutil.Shape(j)
			p.Add(line, dots)
			label := name
			if len(c.series) > 1 {
				label += map[string]string{latencyP50: ", p50", latencyP99: ", p99"}[what]
			}
			p.Legend.Add(label, line, dots)
			drawn = true
		}
	}
	return drawn, nil
}
