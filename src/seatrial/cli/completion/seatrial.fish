# fish completion of seatrial
function __seatrial_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program --complete $words (commandline -ct) 2>/dev/null
end
complete -c seatrial -a '(__seatrial_complete)'
