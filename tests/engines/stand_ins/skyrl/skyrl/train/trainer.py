"""Stands in for SkyRL 0.3.0 and 0.4.0: what its trainer does with a generator's output."""


class RayPPOTrainer:
    def postprocess_generator_output(self, generator_output, uids, metrics_generator_output=None, metrics_uids=None):
        pairs = zip(generator_output["rewards"], generator_output["response_ids"], strict=True)
        generator_output["rewards"] = [[0.0] * (len(response) - 1) + [reward] for reward, response in pairs]
        return generator_output, uids

    def handle_dynamic_sampling(self, generator_output, uids):
        groups = {}
        for uid, reward in zip(uids, generator_output["rewards"], strict=True):
            groups.setdefault(uid, set()).add(reward)
        kept = [i for i, uid in enumerate(uids) if len(groups[uid]) > 1]
        output = {name: values and [values[i] for i in kept] for name, values in generator_output.items()}
        return output, [uids[i] for i in kept], False

    def save_checkpoints(self):
        return f"{self.cfg.trainer.ckpt_path}/global_step_{self.global_step}"

    def load_checkpoints(self):
        return self.resume_step, f"{self.cfg.trainer.ckpt_path}/global_step_{self.resume_step}"
