package stdio

func hostMain() int { return 0 }
