// A browser starts no Worker for a page that was opened from a folder (file:). The search of
// the site runs in one. Here a frame of the same page takes its place.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.answer(data);
      const script = this.inside.document.createElement('script');
      script.src = address;
      this.loaded = new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = reject;
      });
      this.inside.document.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => {
        this.inside.dispatchEvent(new this.inside.MessageEvent('message', {data}));
      });
    }

    answer(data) {
      this.dispatchEvent(new MessageEvent('message', {data}));
    }
  };
}
